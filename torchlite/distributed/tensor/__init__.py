"""Distributed tensors: DTensor, placements, and factory functions."""

from torchlite._settings.module_dir import make_module_dir

from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from . import _arriving_dtensor as _arriving_dtensor
from ._api import DTensor, distribute_module, distribute_tensor
from ._creation import empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard
from .placement_types import _StridedShard as _StridedShard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

from . import experimental as experimental

__dir__ = make_module_dir(globals(), "_StridedShard")
