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
    """Unsupported: optimizes remote parameters, which need `torch.distributed.rpc`."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _get_default_group()
        make_unavailable_function("DistributedOptimizer", "torch.distributed.optim")()


__dir__ = make_module_dir(globals())
