"""State dict types of FullyShardedDataParallel: full tensors, DTensors or local shards, under unwrapped names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.checkpoint.state_dict import strip_wrapper_names
from torchlite.distributed.tensor import DTensor
from torchlite.overrides import is_tensor_like

from ._fsdp_param import FSDPParam
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
    shards = {} if module._state().summoned else _shards_by_name(module)  # type: ignore[operator]
    for name in [name for name in state if name.startswith(inner)]:
        value, plain = state.pop(name), name.removeprefix(inner)
        kept = _convert_to_type(shards[plain].as_dtensor(value) if plain in shards else value, settings)
        if kept is not None:
            state[prefix + plain] = kept


def _shards_by_name(wrapper: nn.Module) -> dict[str, FSDPParam]:
    """Return the parameters that a wrapper shards itself, by their names in the wrapped module's state dict."""
    wrapped: Any = wrapper._fsdp_wrapped_module
    paths: dict[int, list[str]] = {}
    for path, module in wrapped.named_modules(remove_duplicate=False):
        paths.setdefault(id(module), []).append(f"{path}." if path else "")
    group = wrapper._state().group  # type: ignore[operator]
    parameters = [] if group is None else group.parameters
    places = [(parameter, place) for parameter in parameters for place in parameter.places]
    return {
        strip_wrapper_names(wrapped, path + name): parameter
        for parameter, (module, name) in places
        for path in paths[id(module)]
    }


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
    inner, kind = prefix + PREFIX, state_dict_settings(module).state_dict_type
    for name in [name for name in state if name.startswith(prefix) and not name.startswith(inner)]:
        state[inner + name.removeprefix(prefix)] = state.pop(name)
    shards, whole = _shards_by_name(module), module._state().summoned  # type: ignore[operator]
    for name in [name for name in state if name.startswith(inner)]:
        shard = shards.get(strip_wrapper_names(module._fsdp_wrapped_module, name.removeprefix(inner)))
        if shard is not None and is_tensor_like(state[name]):
            value = _to_tensor(state[name])
            state[name] = _to_full(value) if whole else _to_part(value, shard, kind)


def _to_tensor(value: Any) -> torch.Tensor:
    """Return a tensor: a copy of an object that only has `__torch_function__`, as lazily read ones have."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.empty(value.shape, dtype=value.dtype, device=value.device).copy_(value)


def _to_full(value: Any) -> torch.Tensor:
    return value.full_tensor() if isinstance(value, DTensor) else value  # type: ignore[no-any-return]


def _to_part(value: torch.Tensor, shard: FSDPParam, kind: StateDictType) -> torch.Tensor:
    """Return this rank's elements of a loaded tensor; one of another shape is left for the error of the caller."""
    if kind is StateDictType.LOCAL_STATE_DICT and not isinstance(value, DTensor):
        return shard.held_form(value) if value.shape == shard.shard_shape else value
    return shard.held_part(value) if value.shape == shard.size else value
