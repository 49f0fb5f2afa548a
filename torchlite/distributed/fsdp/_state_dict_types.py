"""State dict types of FullyShardedDataParallel: full tensors, DTensors or local shards, under unwrapped names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed._local_shards import distribute_like
from torchlite.distributed.tensor import DTensor

from .api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

PREFIX = "_fsdp_wrapped_module."
_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def _default_settings() -> StateDictSettings:
    return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())


def state_dict_settings(module: nn.Module) -> StateDictSettings:
    """Return the settings of a module's state dict."""
    return module.__dict__.get("_state_dict_settings") or _default_settings()


def _find_fsdp_modules(module: nn.Module) -> list[nn.Module]:
    return [one for one in module.modules() if hasattr(one, "_fsdp_wrapped_module")]


class StateDictTypeMixin:
    """FullyShardedDataParallel's methods that select the state dict type."""

    @staticmethod
    def set_state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Set the state dict type of all wrappers in a module; return the previous settings."""
        kind, of_optimizers = _CONFIGS[state_dict_type]
        config = kind() if state_dict_config is None else state_dict_config
        optim_config = of_optimizers() if optim_state_dict_config is None else optim_state_dict_config
        for given, expected in ((config, kind), (optim_config, of_optimizers)):
            if type(given) is not expected:
                raise RuntimeError(f"Expected state_dict_config of type {expected} but got {type(given)}")
        before = StateDictTypeMixin.get_state_dict_type(module)
        for one in _find_fsdp_modules(module):
            one.__dict__["_state_dict_settings"] = StateDictSettings(state_dict_type, config, optim_config)
        return before

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """Return the state dict type of the wrappers in a module. AssertionError if they differ."""
        found = [state_dict_settings(one) for one in _find_fsdp_modules(module)] or [_default_settings()]
        if any(one != found[0] for one in found):
            raise AssertionError("All FSDP modules must have the same state dict settings.")
        return found[0]

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """Context manager with another state dict type."""
        before = StateDictTypeMixin.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            StateDictTypeMixin.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config
            )


def register_state_dict_hooks(module: nn.Module) -> None:
    """Register hooks that save in the selected type, and load any type."""
    module._register_state_dict_hook(_post_state_dict_hook)
    module._register_load_state_dict_pre_hook(_pre_load_state_dict_hook, with_module=True)


def _post_state_dict_hook(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    settings = state_dict_settings(module)
    inner = prefix + PREFIX
    for name in [name for name in state if name.startswith(inner)]:
        value = state.pop(name)
        kept = _convert_to_type(value, settings)
        if kept is not None:
            state[prefix + name.removeprefix(inner)] = kept


def _convert_to_type(value: Any, settings: StateDictSettings) -> Any:
    """Convert a value to the selected type; None if this rank gets none."""
    config, kind = settings.state_dict_config, settings.state_dict_type
    if isinstance(value, DTensor):
        if kind is StateDictType.FULL_STATE_DICT:
            value = value.full_tensor()
        elif kind is StateDictType.LOCAL_STATE_DICT:
            value = value.to_local()
    if isinstance(config, FullStateDictConfig) and config.rank0_only and dist.get_rank():
        return None
    if config.offload_to_cpu and isinstance(value, torch.Tensor) and value.device.type != "cpu":
        value = value.cpu()
    return value


def _pre_load_state_dict_hook(
    module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any,
    errors: Any,
) -> None:  # fmt: skip
    inner = prefix + PREFIX
    own = dict(module._fsdp_wrapped_module.named_parameters(remove_duplicate=False))  # type: ignore[operator, union-attr]
    for name in [name for name in state if name.startswith(prefix) and not name.startswith(inner)]:
        state[inner + name.removeprefix(prefix)] = state.pop(name)
    plain = {name.replace(PREFIX, ""): parameter for name, parameter in own.items()}
    for name in [name for name in state if name.startswith(inner)]:
        like = plain.get(name.removeprefix(inner).replace(PREFIX, ""))
        value = state[name]
        if isinstance(like, DTensor) and isinstance(value, torch.Tensor) and not isinstance(value, DTensor):
            state[name] = _to_local_part(value, like, state_dict_settings(module).state_dict_type)


def _to_local_part(value: torch.Tensor, like: Any, kind: StateDictType) -> Any:
    """Return a plain tensor as this rank's shard of a parameter."""
    if kind is not StateDictType.LOCAL_STATE_DICT:
        return distribute_like(value, like) if value.shape == like.shape else value
    return DTensor.from_local(
        value, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )
