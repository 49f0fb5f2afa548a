"""Gradient scaler for sharded gradients: all ranks skip a step if one finds an infinity or NaN."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.amp.grad_scaler import GradScaler
from torchlite.distributed.tensor import DTensor

__all__ = ["ShardedGradScaler"]


def _local_shard(parameter: Any) -> Any:
    """Return this rank's shard of a parameter, with its gradient shard."""
    if not isinstance(parameter, DTensor):
        return parameter
    part = parameter.detach().to_local()
    if parameter.grad is not None:
        part.grad = parameter.grad.to_local()
    return part


class ShardedGradScaler(GradScaler):
    """GradScaler whose ranks skip a step if any finds a gradient that is not finite.

    process_group: the ranks that share the gradients; all by default.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool = True) -> dict:
        groups = [{"params": [_local_shard(p) for p in group["params"]]} for group in optimizer.param_groups]
        found = super()._unscale_grads_(SimpleNamespace(param_groups=groups), inv_scale, found_inf, True)
        worst = torch.zeros(1, device=inv_scale.device)
        for note in found.values():
            worst = torch.maximum(worst, note.to(worst.device))
        dist.all_reduce(worst, dist.ReduceOp.MAX, self.process_group)
        for note in found.values():
            note.copy_(worst.squeeze(0))
        return found or {worst.device: worst.squeeze(0)}
