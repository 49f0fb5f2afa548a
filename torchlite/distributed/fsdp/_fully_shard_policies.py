"""Policies of `fully_shard`: mixed precision, CPU offload, mesh dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torchlite as torch


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of the parameters that one call of `fully_shard` shards.

    Args:
        param_dtype: Dtype of the gathered parameters and of computation. Default: that of the shards.
        reduce_dtype: Dtype of the reduction of gradients. Default: that of computation.
        output_dtype: Dtype that floating outputs of forward are cast to. Default: none.
        cast_forward_inputs: Whether floating inputs are cast to ``param_dtype``. Default: ``True``.

    Example:
        >>> torch.distributed.fsdp.MixedPrecisionPolicy(torch.bfloat16).param_dtype
        torch.bfloat16
    """

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    output_dtype: torch.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Policy of `fully_shard` that keeps shards on the device of the mesh.

    Example:
        >>> torch.distributed.fsdp.OffloadPolicy()
        OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Policy of `fully_shard` that keeps shards, their gradients and the optimizer's state in host memory.

    The all-gather copies the shards to the device.

    Args:
        pin_memory: Whether the memory is page-locked, so that a CUDA device reads it directly. Default: ``True``.

    Example:
        >>> torch.distributed.fsdp.CPUOffloadPolicy(pin_memory=False)
        CPUOffloadPolicy(pin_memory=False)
    """

    pin_memory: bool = True


@dataclass
class DataParallelMeshDims:
    """Names of the mesh dimensions over which `fully_shard` shards and replicates.

    Args:
        shard: The name, or names, of the sharding dimensions. Default: ``None``.
        replicate: The name, or names, of the replicating dimensions. Default: ``None``.

    Example:
        >>> torch.distributed.fsdp.DataParallelMeshDims(shard="fsdp")
        DataParallelMeshDims(shard='fsdp', replicate=None)
    """

    shard: Any = None
    replicate: Any = None
