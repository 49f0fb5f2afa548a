"""Tensors over several processes: none."""

from __future__ import annotations

from .._absent import absent, kind
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from . import experimental as experimental

_HERE = "torch.distributed.tensor"

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

DTensor = kind("DTensor", _HERE)
Placement = kind("Placement", _HERE)
Partial, Replicate, Shard = (kind(name, _HERE, Placement) for name in ("Partial", "Replicate", "Shard"))
distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros = (
    absent(name, _HERE)
    for name in ("distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros")
)
