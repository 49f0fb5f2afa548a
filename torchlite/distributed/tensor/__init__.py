"""Tensors over several processes: how they may lie; none yet."""

from __future__ import annotations

from .._absent import absent, kind
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from . import experimental as experimental
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

_HERE = "torch.distributed.tensor"

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

DTensor = kind("DTensor", _HERE)
distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros = (
    absent(name, _HERE)
    for name in ("distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros")
)
