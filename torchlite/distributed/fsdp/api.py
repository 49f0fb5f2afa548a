"""Options of FullyShardedDataParallel, and its state dict types."""

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
    """Sharding strategy of `FullyShardedDataParallel`.

    ``FULL_SHARD`` reshards parameters between forward and backward. ``SHARD_GRAD_OP`` keeps them unsharded in between.
    ``NO_SHARD`` replicates them. ``HYBRID_SHARD`` shards over some ranks and replicates over the others.

    Example:
        >>> torch.distributed.fsdp.ShardingStrategy.FULL_SHARD.name
        'FULL_SHARD'
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """Time of the next module's all-gather in backward; accepted by `FullyShardedDataParallel`, without effect.

    Example:
        >>> [kind.name for kind in torch.distributed.fsdp.BackwardPrefetch]
        ['BACKWARD_PRE', 'BACKWARD_POST']
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Form of a sharded module's state dict: full tensors, local shards, or DTensors.

    Example:
        >>> [kind.name for kind in torch.distributed.fsdp.StateDictType]
        ['FULL_STATE_DICT', 'LOCAL_STATE_DICT', 'SHARDED_STATE_DICT']
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """Keys of an optimizer's state: names or numbers of parameters.

    Example:
        >>> [kind.name for kind in torch.distributed.fsdp.OptimStateKeyType]
        ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """Dtypes of a `FullyShardedDataParallel` module; ``None`` keeps the parameters' dtype.

    Args:
        param_dtype: Dtype of the gathered parameters and of computation. Default: ``None``.
        reduce_dtype: Dtype of the reduction of gradients. Default: that of computation.
        buffer_dtype: Dtype of buffers. Default: ``None``.
        keep_low_precision_grads: Has no effect: gradients have the dtype of the shards.
        cast_forward_inputs: Whether the inputs of every wrapped module are cast. Default: ``False``.
        cast_root_forward_inputs: Whether the inputs of the outermost module are cast. Default: ``True``.

    Example:
        >>> torch.distributed.fsdp.MixedPrecision(param_dtype=torch.bfloat16).param_dtype
        torch.bfloat16
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
    """Option of `FullyShardedDataParallel` that keeps shards in host memory.

    Args:
        offload_params: Whether they are there. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.CPUOffload(offload_params=True)
        CPUOffload(offload_params=True)
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Base class of the options of a state dict.

    Args:
        offload_to_cpu: Whether its tensors are in host memory. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.StateDictConfig()
        StateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of a state dict of full tensors.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``False``.
        rank0_only: Whether only rank 0 gets them. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.FullStateDictConfig(rank0_only=True).rank0_only
        True
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of a state dict of local shards.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.LocalStateDictConfig().offload_to_cpu
        False
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of a state dict of DTensors.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
        False
    """

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Base class of the options of an optimizer's state dict.

    Args:
        offload_to_cpu: Whether its tensors are in host memory. Default: ``True``.

    Example:
        >>> torch.distributed.fsdp.OptimStateDictConfig()
        OptimStateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of an optimizer's state dict of full tensors.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``True``.
        rank0_only: Whether only rank 0 gets them. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.FullOptimStateDictConfig(rank0_only=True).rank0_only
        True
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options of an optimizer's state dict of local shards.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``False``.

    Example:
        >>> torch.distributed.fsdp.LocalOptimStateDictConfig()
        LocalOptimStateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of an optimizer's state dict of DTensors.

    Args:
        offload_to_cpu: Whether they are in host memory. Default: ``True``.

    Example:
        >>> torch.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
        True
    """

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """Form of the state dicts of a module and its optimizer.

    `FullyShardedDataParallel.get_state_dict_type` returns it.

    Args:
        state_dict_type: The form.
        state_dict_config: Options of the module's state dict.
        optim_state_dict_config: Options of the optimizer's state dict.

    Example:
        >>> from torchlite.distributed import fsdp
        >>> settings = fsdp.FullyShardedDataParallel.get_state_dict_type(torch.nn.Linear(2, 1))
        >>> settings.state_dict_type.name
        'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
