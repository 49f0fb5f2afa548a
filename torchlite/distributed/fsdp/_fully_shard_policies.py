"""Policies of `fully_shard`: mixed precision, CPU offload, mesh dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torchlite as torch


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a parameter group.

    param_dtype: dtype of gathered parameters and computation; None: the shards'. reduce_dtype: dtype of the gradient
    reduction; None: that of the computation. output_dtype: floating outputs of forward are cast to it.
    cast_forward_inputs: cast floating inputs to param_dtype.
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
    """Shards, their gradients and the optimizer's state are in host memory, and copied to the device for the
    all-gather.

    pin_memory: page-locked memory, which a CUDA device reads directly.
    """

    pin_memory: bool = True


@dataclass
class DataParallelMeshDims:
    """Names of the mesh dimensions that shard and replicate."""

    shard: Any = None
    replicate: Any = None
