"""No-op communication hook, to measure training time without communication."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.distributed._grad_bucket import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Returns the gradients of this process alone, to measure the time without communication.

    Args:
        _: Ignored.
        bucket: The gradients, a `GradBucket`.

    Returns:
        A future of the reduced gradients.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import debugging_hooks
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, debugging_hooks.noop_hook)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    future: Any = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future
