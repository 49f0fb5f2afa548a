"""What `FullyShardedDataParallel` is told, and the kinds of state dicts that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torchlite as torch
from torchlite.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """FULL_SHARD: parameters are given back between forward and backward. SHARD_GRAD_OP: they stay. NO_SHARD: each rank
    has all. HYBRID_SHARD: shards over some ranks, copies over the others.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward begins to gather the next module's parameters: before this one's gradients, or after."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whole tensors, this rank's parts, or DTensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """Whether an optimizer's state goes by parameters' names or by their numbers."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """Dtypes of computation, of the gradients' reduction and of buffers; None: as they are.

    keep_low_precision_grads: has no effect, gradients are in the shards' dtype. cast_forward_inputs: of every wrapped
    module; cast_root_forward_inputs: of the outermost one.
    """

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    buffer_dtype: torch.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Any]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether shards lie in the host's memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether state dicts are in the host's memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors, on rank 0 alone with `rank0_only`."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """This rank's parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """DTensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether an optimizer's state is in the host's memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors, on rank 0 alone with `rank0_only`."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """This rank's parts."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """DTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """A kind of state dict with what is said of it."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
