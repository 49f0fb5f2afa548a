"""Communication hook of post-local SGD: global reduction first, later in a subgroup, with model averaging."""

from __future__ import annotations

import logging
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._grad_bucket import GradBucket

from .default_hooks import _allreduce_fut

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """Groups and iteration count: until `start_localSGD_iter` the `process_group` (None: all) reduces, then `subgroup`.

    A `subgroup` of None means the processes of a machine; without `post_local_gradient_allreduce` nobody reduces.
    """

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        self.iter += bucket.is_last()
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return the mean of the gradients over all processes, or later over the subgroup."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())
