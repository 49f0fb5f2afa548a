"""Scaling of gradients over several processes: none."""

from .._absent import kind

__all__ = ["ShardedGradScaler"]

ShardedGradScaler = kind("ShardedGradScaler", "torch.distributed.fsdp.sharded_grad_scaler")
