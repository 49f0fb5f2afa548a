"""State dicts of models and optimizers under canonical names, independent of wrappers and of the number of ranks.

A wrapped model (DistributedDataParallel, FullyShardedDataParallel, activation checkpoints) has the names of the
unwrapped one, and an optimizer's state is keyed by these names. Sharded tensors are DTensors, or full tensors with
`full_state_dict`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed._local_shards import distribute_like
from torchlite.distributed.tensor import DTensor
from torchlite.nn.parallel import DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")
_STATE, _GROUPS, _PARAMS = "state", "param_groups", "params"


@dataclass
class StateDictOptions:
    """Options of the functions that get and set state dicts.

    Args:
        full_state_dict: Whether tensors are full; otherwise DTensors stay. Default: ``False``.
        cpu_offload: Whether tensors are in host memory; with ``full_state_dict`` only rank 0 gets them. Default:
            ``False``.
        ignore_frozen_params: Whether parameters that do not require grad are left out. Default: ``False``.
        keep_submodule_prefixes: Whether the names of ``submodules`` begin with the submodule's. Default: ``True``.
        strict: As for `torch.nn.Module.load_state_dict`. Default: ``True``.
        broadcast_from_rank0: Whether only rank 0 has the state dict to set, in full. Default: ``False``.
        flatten_optimizer_state_dict: Whether the optimizer's is one dictionary of names such as
            ``"state.weight.exp_avg"``. Default: ``False``.
        dsd_fqn_modifiers: Has no effect.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import StateDictOptions
        >>> StateDictOptions(full_state_dict=True).full_state_dict
        True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _check_options(options: StateDictOptions | None) -> StateDictOptions:
    options = StateDictOptions() if options is None else options
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _check_empty(what: str, options: StateDictOptions) -> None:
    """Raise RuntimeError for an empty state dict, unless other ranks have it or it may be empty."""
    elsewhere = options.full_state_dict and options.cpu_offload
    if options.strict and not elsewhere and not options.ignore_frozen_params:
        rank = dist.get_rank() if dist.is_initialized() else 0
        raise RuntimeError(
            f"The option indicates that {what} state_dict is required to save or load, but {what} state_dict is "
            f"empty. rank = {rank}."
        )


# -- names


def strip_wrapper_names(model: nn.Module, name: str) -> str:
    """Return a name without wrappers' prefixes."""
    module: Any = model
    kept = []
    for part in name.split("."):
        wraps = part in _WRAPPERS or (part == "module" and isinstance(module, DistributedDataParallel))
        if not wraps:
            kept.append(part)
        module = getattr(module, part, None) if isinstance(module, nn.Module) else None
    return ".".join(kept)


def _parameter_names(model: nn.Module) -> dict[int, str]:
    """Return the names of parameters, by identity; the first for one with several."""
    found: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), strip_wrapper_names(model, name))
    return found


def _wrapper_prefixes(model: nn.Module, submodules: set[nn.Module] | None) -> list[str]:
    if not submodules:
        return []
    import warnings

    warnings.warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This feature can be "
        "achieved by manually filtering out the state_dict returned from get_state_dict.",
        FutureWarning,
        stacklevel=3,
    )
    return [f"{strip_wrapper_names(model, name)}." for name, module in model.named_modules() if module in submodules]


@contextlib.contextmanager
def _use_sharded_state_dict(model: nn.Module) -> Iterator[None]:
    """Context manager: FullyShardedDataParallel's modules use DTensors."""
    from torchlite.distributed.fsdp.api import StateDictType

    chooser = next((found for found in map(_state_dict_type, model.modules()) if found is not None), None)
    with contextlib.nullcontext() if chooser is None else chooser(model, StateDictType.SHARDED_STATE_DICT):
        yield


def _state_dict_type(module: nn.Module) -> Any:
    """Return the setter of the state dict type, for FullyShardedDataParallel's modules only."""
    return getattr(module, "state_dict_type", None) if hasattr(module, "_fsdp_wrapped_module") else None


# -- full and sharded tensors


def _map_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_map_tensors(item, change) for item in value])
    return value


def _apply_options(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return a state dict with the requested options: full tensors, on the host."""
    if not options.full_state_dict:
        return _map_tensors(state, _copy_to_host) if options.cpu_offload else state
    mine = not options.cpu_offload or not dist.is_initialized() or dist.get_rank() == 0

    def gather_full_tensor(tensor: Any) -> Any:
        full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        return (full.cpu() if options.cpu_offload else full) if mine else None

    found = _map_tensors(state, gather_full_tensor)
    return found if mine else {}


def _copy_to_host(tensor: Any) -> Any:
    if not isinstance(tensor, DTensor):
        return tensor.cpu()
    return DTensor.from_local(
        tensor.to_local().cpu(), tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape,
        stride=tensor.stride(),
    )  # fmt: skip


def _plain_shards(model: nn.Module) -> dict[int, Any]:
    """Return FullyShardedDataParallel's parameters, by identity; each converts between its shard and a DTensor."""
    if not any(hasattr(module, "_fsdp_wrapped_module") for module in model.modules()):
        return {}
    from torchlite.distributed.fsdp._fsdp_state import plain_shards

    return plain_shards(model)


def _as_dtensors(held: dict[str, Any], shard: Any) -> dict[str, Any]:
    """Return a parameter's state with DTensors for tensors of the form of its plain shard, if it has one."""
    if shard is None:
        return held
    form = shard.sharded.shape
    has_form = lambda value: isinstance(value, torch.Tensor) and value.shape == form
    return {key: shard.as_dtensor(value) if has_form(value) else value for key, value in held.items()}


def _convert_like(value: Any, like: Any) -> Any:
    """Convert a full tensor to the form of another of its shape; return other values unchanged."""
    whole = isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
    if whole and isinstance(like, DTensor) and value.shape == like.shape:
        return distribute_like(value, like)
    return value


def _broadcast_from_rank_0(state: dict[str, Any], take: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Broadcast rank 0's flat state dict tensor by tensor; `take(name, tensor)` returns the part to keep."""
    first = dist.get_rank() == 0
    shown = lambda value: (value.shape, value.dtype) if isinstance(value, torch.Tensor) else None
    message: list[Any] = [None]
    if first:
        message = [[(name, shown(value), None if shown(value) else value) for name, value in state.items()]]
    dist.broadcast_object_list(message, 0)
    device = dist.distributed_c10d._get_pg_default_device()
    found: dict[str, Any] = {}
    for name, tensor, value in message[0]:
        if tensor is None:
            found[name] = value
            continue
        sent = (
            state[name].detach().to(device).contiguous()
            if first
            else torch.empty(tensor[0], dtype=tensor[1], device=device)
        )
        dist.broadcast(sent, 0)
        found[name] = take(name, sent)
    return found


# -- models


def get_model_state_dict(
    model: nn.Module, *, submodules: set[nn.Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Returns a model's state dict, with names without wrappers. All ranks call it.

    Args:
        model: The model.
        submodules: The submodules to include. Default: all.
        options: The options. Default: those of `StateDictOptions`.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    options = _check_options(options)
    prefixes = _wrapper_prefixes(model, submodules)
    with _use_sharded_state_dict(model):
        raw = model.state_dict()
    state = {strip_wrapper_names(model, name): value for name, value in raw.items()}
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad:
                state.pop(strip_wrapper_names(model, name), None)
    return _apply_options(_filter_submodules(state, prefixes, options), options)


def _filter_submodules(state: dict[str, Any], prefixes: list[str], options: StateDictOptions) -> dict[str, Any]:
    """Return the entries of the requested submodules."""
    if not prefixes:
        return state
    found = {}
    for name, value in state.items():
        prefix = next((p for p in prefixes if name.startswith(p)), None)
        if prefix is not None:
            found[name if options.keep_submodule_prefixes else name.removeprefix(prefix)] = value
    return found


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state dict of `get_model_state_dict` into a model. All ranks call it.

    Args:
        model: The model.
        model_state_dict: The state dict.
        options: The options. Default: those of `StateDictOptions`.

    Returns:
        The missing and the unexpected names.

    Raises:
        RuntimeError: Names are missing or unexpected and ``strict`` is set, or shapes differ.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import set_model_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> set_model_state_dict(model, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
        <All keys matched successfully>
    """
    options = _check_options(options)
    if not model_state_dict and not options.broadcast_from_rank0:
        _check_empty("model", options)
        return torch.nn.modules.module._IncompatibleKeys([], [])
    with _use_sharded_state_dict(model):
        current = model.state_dict()
        names = {strip_wrapper_names(model, name): name for name in current}
        fitted = lambda name, value: _convert_like(value, current.get(names.get(name, "")))
        if options.broadcast_from_rank0:
            state = _broadcast_from_rank_0(model_state_dict, fitted)
        elif options.full_state_dict:
            state = {name: fitted(name, value) for name, value in model_state_dict.items()}
        else:
            state = dict(model_state_dict)
        assign = any(isinstance(value, torch.Tensor) and value.is_meta for value in current.values())
        renamed = {names.get(name, name): value for name, value in state.items()}
        return model.load_state_dict(renamed, strict=options.strict, assign=assign)


# -- optimizers


def _as_list(optimizers: Any) -> tuple[Any, ...]:
    return (optimizers,) if isinstance(optimizers, torch.optim.Optimizer) else tuple(optimizers)


def _init_optim_state(optimizer: Any) -> None:
    """Initialise an optimizer's state by a step that changes nothing, if it has none."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group[_PARAMS]]
    if any(p.grad is not None for p in parameters):
        return  # its first step comes
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], torch.Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Any,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Returns the state dict of optimizers, by the names of the model's parameters. All ranks call it.

    An optimizer that made no step initializes its state.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        submodules: The submodules to include. Default: all.
        options: The options. Default: those of `StateDictOptions`.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> state = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))
        >>> state["param_groups"][0]["params"]
        ['weight', 'bias']
    """
    options = _check_options(options)
    prefixes = _wrapper_prefixes(model, submodules)
    names, shards = _parameter_names(model), _plain_shards(model)
    state: dict[str, Any] = {_STATE: {}, _GROUPS: []}
    for optimizer in _as_list(optimizers):
        _init_optim_state(optimizer)
        own = optimizer.state_dict()
        by_number: dict[Any, Any] = {}
        for group, saved in zip(optimizer.param_groups, own[_GROUPS], strict=True):
            mine = [names[id(parameter)] for parameter in group[_PARAMS]]
            by_number.update(zip(saved[_PARAMS], group[_PARAMS], strict=True))
            kept = list(_filter_submodules(dict.fromkeys(mine), prefixes, options))
            if kept or not prefixes:
                state[_GROUPS].append({**saved, _PARAMS: kept})
        found = {
            names[id(by_number[number])]: _as_dtensors(held, shards.get(id(by_number[number])))
            for number, held in own[_STATE].items()
        }
        state[_STATE].update(_filter_submodules(found, prefixes, options))
    given = _apply_options(state, options)
    return _flatten_by_name(given) if given and options.flatten_optimizer_state_dict else given


def _flatten_by_name(state: dict[str, Any]) -> dict[str, Any]:
    """Return state and each parameter's settings as a flat dict."""
    flat = {f"{_STATE}.{name}.{key}": value for name, held in state[_STATE].items() for key, value in held.items()}
    for group in state[_GROUPS]:
        for name in group[_PARAMS]:
            flat |= {f"{_GROUPS}.{name}.{key}": value for key, value in group.items() if key != _PARAMS}
    return flat


def _is_flat(state: dict[str, Any]) -> bool:
    return bool(state) and _STATE not in state and all(name.startswith((f"{_STATE}.", f"{_GROUPS}.")) for name in state)


def _to_positional_state(
    optimizer: Any, names: dict[int, str], state: dict[str, Any], fit: Callable[..., Any]
) -> dict[str, Any]:
    """Return an optimizer's own state dict, keyed by number, from one keyed by name."""
    own = optimizer.state_dict()
    positional: dict[str, Any] = {_STATE: {}, _GROUPS: []}
    flat = _is_flat(state)
    for group, saved in zip(optimizer.param_groups, own[_GROUPS], strict=True):
        known = [names[id(parameter)] for parameter in group[_PARAMS]]
        settings = _group_settings(state, known, saved, flat)
        positional[_GROUPS].append({**saved, **settings, _PARAMS: saved[_PARAMS]})
        for number, name, parameter in zip(saved[_PARAMS], known, group[_PARAMS], strict=True):
            if flat:
                keys = own[_STATE].get(number, {})
                entries = {key: state[f"{_STATE}.{name}.{key}"] for key in keys if f"{_STATE}.{name}.{key}" in state}
            else:
                entries = state[_STATE].get(name, {})
            if entries:
                positional[_STATE][number] = {key: fit(value, parameter) for key, value in entries.items()}
    return positional


def _group_settings(state: dict[str, Any], known: list[str], saved: dict[str, Any], flat: bool) -> dict[str, Any]:
    """Return the settings of a group's parameters."""
    if not known:
        return {}
    if flat:
        prefix = f"{_GROUPS}.{known[0]}."
        return {key: state[prefix + key] for key in saved if prefix + key in state}
    found = next((group for group in state[_GROUPS] if known[0] in group[_PARAMS]), None)
    return {} if found is None else {key: value for key, value in found.items() if key != _PARAMS}


def _flatten_optim_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return an optimizer's state as flat names of tensors, with the rest under one name."""
    if _is_flat(state) or not state:
        return dict(state)
    tensors: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name, held in state[_STATE].items():
        plain[name] = {key: value for key, value in held.items() if not isinstance(value, torch.Tensor)}
        tensors |= {f"{name}\0{key}": value for key, value in held.items() if isinstance(value, torch.Tensor)}
    return {**tensors, "": {_STATE: plain, _GROUPS: state[_GROUPS]}}


def _unflatten_optim_state(flat: dict[str, Any]) -> dict[str, Any]:
    if "" not in flat:
        return flat
    state = flat.pop("")
    for path, value in flat.items():
        name, _, key = path.partition("\0")
        state[_STATE].setdefault(name, {})[key] = value
    return state  # type: ignore[no-any-return]


def localize_optim_state(model: nn.Module, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return a state by names, full or sharded, for this rank's `optimizer.load_state_dict`."""
    _init_optim_state(optimizer)
    shards = _plain_shards(model)

    def fit(value: Any, parameter: Any) -> Any:
        shard = shards.get(id(parameter))
        if shard is None:
            return _convert_like(value, parameter)
        return shard.held_part(value) if isinstance(value, torch.Tensor) and value.shape == shard.size else value

    return _to_positional_state(optimizer, _parameter_names(model), state, fit)


def set_optimizer_state_dict(
    model: nn.Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Loads a state dict of `get_optimizer_state_dict` into optimizers. All ranks call it.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        optim_state_dict: The state dict.
        options: The options. Default: those of `StateDictOptions`.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> set_optimizer_state_dict(model, optimizer, get_optimizer_state_dict(model, optimizer))
    """
    options = _check_options(options)
    names, shards = _parameter_names(model), _plain_shards(model)
    likes = {names[id(p)]: shards[id(p)].dtensor if id(p) in shards else p for p in model.parameters()}
    state = optim_state_dict
    if options.broadcast_from_rank0:

        def take(path: str, value: Any) -> Any:
            name = path.partition("\0")[0] if "\0" in path else path.split(".", 1)[1].rpartition(".")[0]
            return _convert_like(value, likes.get(name))

        state = _unflatten_optim_state(_broadcast_from_rank_0(_flatten_optim_state(optim_state_dict), take))
    for optimizer in _as_list(optimizers):
        if state:
            optimizer.load_state_dict(localize_optim_state(model, optimizer, state))


# -- both


def get_state_dict(
    model: nn.Module,
    optimizers: Any,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the state dicts of a model and of its optimizers, by the model's names. All ranks call it.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        submodules: The submodules to include. Default: all.
        options: The options. Default: those of `StateDictOptions`.

    Returns:
        A pair: the model's state dict, and the optimizers'.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> states = get_state_dict(model, optimizer)
        >>> list(states[1]["state"]["weight"]), states[1]["param_groups"][0]["params"]
        (['step', 'exp_avg', 'exp_avg_sq'], ['weight', 'bias'])
        >>> set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1])
        <All keys matched successfully>
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: nn.Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Loads state dicts of `get_state_dict` into a model and its optimizers. All ranks call it.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        model_state_dict: The model's state dict.
        optim_state_dict: The optimizers' state dict.
        options: The options. Default: those of `StateDictOptions`.

    Returns:
        The missing and the unexpected names of the model.

    Raises:
        RuntimeError: Names are missing or unexpected and ``strict`` is set, or shapes differ.

    Example:
        >>> from torchlite.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
        >>> weights, state = get_state_dict(model, optimizer)
        >>> set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
        <All keys matched successfully>
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
