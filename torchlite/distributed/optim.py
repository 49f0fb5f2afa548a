"""Optimizers over several processes: classes that programs ask for. Making one says that there is no process group."""

from __future__ import annotations

from typing import Any

from torchlite.optim import Optimizer

from .distributed_c10d import _no_group

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """States that processes share out: there is one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_group()


class PostLocalSGDOptimizer(Optimizer):
    """Steps that processes take alone and average later: there is one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_group()


class DistributedOptimizer:
    """Parameters in other processes: there is one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_group()
