"""DistributedDataParallel, which needs `torch.distributed`: there is none here."""

from __future__ import annotations

from typing import Any

from torchlite.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A name for programs that ask whether a model is one. Making one raises ValueError, as in PyTorch without process
    groups.
    """

    module: Module

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
