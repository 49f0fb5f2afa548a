"""Temporarily unsharded parameters (`summon_full_params`), and gradient clipping of sharded gradients."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torchlite as torch
import torchlite.distributed as dist

from ._fsdp_state import FSDPState


@contextlib.contextmanager
def unshard_params(states: list[FSDPState], writeback: bool, rank0_only: bool, with_grads: bool) -> Iterator[None]:
    """Unshard modules' parameters inside; with `writeback` copy changes to the shards."""
    if writeback and rank0_only:
        raise NotImplementedError(
            "writeback=True and rank0_only=True is not supported, as model parameter shapes will be different across "
            "ranks, and writing to them can lead to inconsistencies across ranks when the context is exited."
        )
    groups = [state.group for state in states if state.group is not None]
    before = [group.whole for group in groups]
    mine = not rank0_only or dist.get_rank() == 0
    for state in states:
        state.summoned = True
    try:
        for group in groups:
            for parameter in group.parameters:
                parameter.renew()
            group.unshard()
            for parameter in group.parameters if with_grads else ():
                parameter.show_gradient()
        if not mine:
            for group in groups:
                group.reshard()
        yield
    finally:
        with torch.no_grad():
            for group, was in zip(groups, before, strict=True):
                for parameter in group.parameters if mine else ():
                    parameter.write_back(writeback, with_grads)
                if not was:
                    group.reshard()
        for state in states:
            state.summoned = False


def _partial_norm(tensors: list[torch.Tensor], kind: float) -> torch.Tensor:
    """Return the norm of some tensors to the power of `kind`, additive over ranks."""
    norms = [torch.linalg.vector_norm(tensor.detach(), kind, dtype=torch.float32) for tensor in tensors]
    if not norms:
        return torch.zeros(())
    if math.isinf(kind):
        return torch.stack(norms).amax()
    return torch.stack(norms).pow(kind).sum()


def clip_sharded_grad_norm(state: FSDPState, parameters: list[Any], most: float, kind: float) -> torch.Tensor:
    """Clip the gradients' total norm to `most`; return the norm before."""
    groups = [group for one in state.begin().states for group in [one.group] if group is not None]
    sharded = {id(parameter.sharded) for group in groups for parameter in group.parameters}
    parts = [p.grad for p in parameters if p.grad is not None and id(p) in sharded]
    same = [p.grad for p in parameters if p.grad is not None and id(p) not in sharded]
    total = _partial_norm(parts, kind)
    if groups:
        op = dist.ReduceOp.MAX if math.isinf(kind) else dist.ReduceOp.SUM
        dist.all_reduce(total, op, groups[0].lanes.group)
    here = _partial_norm(same, kind)
    total = torch.maximum(total, here) if math.isinf(kind) else (total + here).pow(1 / kind)
    factor = torch.clamp(most / (total + 1e-6), max=1.0)
    with torch.no_grad():
        for grad in (*parts, *same):
            grad.mul_(factor.to(grad.device, grad.dtype))
    return total
