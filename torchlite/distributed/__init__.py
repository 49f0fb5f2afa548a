"""Distributed communication: process groups, collectives, stores, and training across processes.

`torchlite-run` (`python -m torchlite.distributed.run`) or `mpiexec` starts the processes; one process needs neither.
"""

from __future__ import annotations

import importlib
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.callbacks import CALLBACKS
from . import distributed_c10d
from ._sync_batch_norm import sync_batch_norm, sync_batch_norm_group
from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import *
from .distributed_c10d import __all__ as _names

CALLBACKS.sync_batch_norm, CALLBACKS.sync_batch_norm_group = sync_batch_norm, sync_batch_norm_group

__all__ = [*_names, "DeviceMesh", "init_device_mesh", "is_available"]


def is_available() -> bool:
    """True if the distributed package is available.

    >>> import torchlite as torch
    >>> torch.distributed.is_available()
    True
    """
    return True


def __getattr__(name: str) -> Any:
    if name in (
        "_functional_collectives",
        "constants",
        "nn",
        "rpc",
        "fsdp",
        "tensor",
        "optim",
        "autograd",
        "run",
        "elastic",
        "algorithms",
    ):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "_remote_device":
        return importlib.import_module(f"{__name__}.remote_device")._remote_device
    return getattr(distributed_c10d, name)


__dir__ = make_module_dir(globals())
