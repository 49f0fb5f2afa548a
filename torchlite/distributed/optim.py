"""Optimizers over several processes: classes that programs ask for, and that are not built yet."""

from __future__ import annotations

from typing import Any

from torchlite.optim import Optimizer

from ._absent import absent
from .distributed_c10d import _get_default_group

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


def _refuse(name: str) -> None:
    _get_default_group()
    absent(name, "torch.distributed.optim")()


class ZeroRedundancyOptimizer(Optimizer):
    """States that processes share out."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__)


class PostLocalSGDOptimizer(Optimizer):
    """Steps that processes take alone and average later."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__)


class DistributedOptimizer:
    """Parameters in other processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__)
