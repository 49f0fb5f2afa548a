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
    """Communication hooks of `DistributedDataParallel`, by name.

    Example:
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
        >>> DDPCommHookType["FP16_COMPRESS"].name
        'FP16_COMPRESS'
    """

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
    """Registers a communication hook by name.

    Args:
        comm_hook_type: The name.
        model: The `DistributedDataParallel`.
        state: The group, or the hook's state. Default: ``None``.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """
    comm_hook_type.value(model=model, state=state)


__dir__ = make_module_dir(globals())
