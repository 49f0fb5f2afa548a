"""Models whose parameters lie over several processes: none."""

from __future__ import annotations

from torchlite.nn.modules.module import Module

from .._absent import absent, kind

_HERE = "torch.distributed.fsdp"
_KINDS = (
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision",
    "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "UnshardHandle",
)  # fmt: skip

__all__ = [
    *_KINDS, "FullyShardedDataParallel", "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip

globals().update({name: kind(name, _HERE) for name in _KINDS})
FullyShardedDataParallel = kind("FullyShardedDataParallel", _HERE, Module)
fully_shard, register_fsdp_forward_method = (
    absent(name, _HERE) for name in ("fully_shard", "register_fsdp_forward_method")
)
