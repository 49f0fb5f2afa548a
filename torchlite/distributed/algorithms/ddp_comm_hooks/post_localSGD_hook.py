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
    """State of `post_localSGD_hook`.

    Args:
        process_group: The group that averages at first; ``None`` for the default group.
        subgroup: The group that averages later; ``None`` for the processes of a machine.
        start_localSGD_iter: The number of iterations before ``subgroup`` averages.
        post_local_gradient_allreduce: Whether ``subgroup`` averages; otherwise gradients stay local. Default: ``True``.

    Example:
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState
        >>> PostLocalSGDState(None, None, start_localSGD_iter=100).iter
        0
    """

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts an iteration, at its last bucket.

        Args:
            bucket: The bucket.
        """
        self.iter += bucket.is_last()
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages the gradients over a group, and after some iterations over a subgroup.

    Args:
        state: The state.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> state = post_localSGD_hook.PostLocalSGDState(None, None, 100)
        >>> model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()

    References:
        - T. Lin, S. U. Stich, K. K. Patel, M. Jaggi. Don't use large mini-batches, use local SGD. 2020.
    """
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
