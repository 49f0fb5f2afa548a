"""Distributed optimizers: ZeroRedundancyOptimizer, PostLocalSGDOptimizer."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlite._settings.module_dir import make_module_dir

from .._group_registry import _get_default_group
from .._unavailable_stubs import make_unavailable_function
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class DistributedOptimizer:
    """Optimizer of remote parameters in PyTorch; not supported: the constructor raises NotImplementedError.

    It needs distributed autograd, which does not exist here.

    Args:
        args: Ignored.
        kwargs: Ignored.

    Raises:
        ValueError: There is no default group.
        NotImplementedError: Always, if there is one.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> torch.distributed.optim.DistributedOptimizer(torch.optim.SGD, [])
        Traceback (most recent call last):
        NotImplementedError: ...
        >>> dist.destroy_process_group()
    """

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _get_default_group()
        make_unavailable_function("DistributedOptimizer", "torch.distributed.optim")()


__dir__ = make_module_dir(globals())
