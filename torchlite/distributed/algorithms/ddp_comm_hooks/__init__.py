"""Hooks for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

import enum
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook, quantization_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _HookRegistration:
    """Registers a hook with a model: `value(model=..., state=process_group)`."""

    def __init__(self, hook: Any, rank: int = 0) -> None:
        self.hook, self.rank = hook, rank

    def __call__(self, model: Any, state: Any = None, start_powerSGD_iter: int = 1_000, **given: Any) -> None:
        if self.rank:
            rank = given.get("matrix_approximation_rank", self.rank)
            state = powerSGD_hook.PowerSGDState(state, rank, start_powerSGD_iter)
        model.register_comm_hook(state, self.hook)


class DDPCommHookType(enum.Enum):
    """The hooks by name. `DDPCommHookType.FP16_COMPRESS.value(model=model, state=group)` registers one."""

    ALLREDUCE = _HookRegistration(default_hooks.allreduce_hook)
    FP16_COMPRESS = _HookRegistration(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _HookRegistration(default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _HookRegistration(quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _HookRegistration(quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = _HookRegistration(powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _HookRegistration(powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _HookRegistration(powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _HookRegistration(powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = _HookRegistration(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register a hook by name; `state` is a process group, or None."""
    comm_hook_type.value(model=model, state=state)


__dir__ = make_module_dir(globals())
