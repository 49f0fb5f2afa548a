"""What `fully_shard` is told: dtypes, where shards lie, and meshes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torchlite as torch

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a group of parameters.

    param_dtype: that in which parameters are gathered and computed with; they stay what they are as shards. None: the
    same. reduce_dtype: that of the gradients' reduction; None: that of the computation. output_dtype: to which floating
    outputs of the module's forward are cast. cast_forward_inputs: whether its floating inputs are cast to param_dtype.
    """

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    output_dtype: torch.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards stay on the device of the mesh."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the optimizer's state lie in the host's memory, and go to the device to be gathered.

    pin_memory: memory that a CUDA device reads by itself.
    """

    pin_memory: bool = True


@dataclass
class DataParallelMeshDims:
    """Which dimensions of a mesh, by name, shard and which replicate."""

    shard: Any = None
    replicate: Any = None
