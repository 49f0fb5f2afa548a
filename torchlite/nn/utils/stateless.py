"""Calling a module with other parameters than its own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite.nn.modules.module import Module


__all__ = ["functional_call"]


def _tied(module, given, strict):
    """`given` with every name of a tensor that the module holds under several names."""
    names: dict[int, list[str]] = {}
    for name, value in [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]:
        names.setdefault(id(value), []).append(name)
    groups = {name: group for group in names.values() for name in group}
    result = dict(given)
    for name, value in given.items():
        for other in groups.get(name, ()):
            if other in given and given[other] is not value:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(set(groups[name]) & set(given))}, which "
                    "are tied. Consider using tie_weights=False"
                )
            result[other] = value
    return result


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    given = _tied(module, parameters_and_buffers, strict) if tie_weights else dict(parameters_and_buffers)
    known = {
        name
        for name, _ in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    }
    if strict:
        missing, unexpected = known - set(given), set(given) - known
        if missing or unexpected:
            parts = [f"Missing key(s): {', '.join(map(repr, sorted(missing)))}."] if missing else []
            parts += [f"Unexpected key(s): {', '.join(map(repr, sorted(unexpected)))}."] if unexpected else []
            raise RuntimeError(
                "Error(s) in reparametrizing for {}:\n\t{}".format(type(module).__name__, "\n\t".join(parts))
            )
    undo = []
    try:
        for name, value in given.items():
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path)
            registry = owner._parameters if leaf in owner._parameters else owner._buffers
            if leaf not in registry:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{leaf}`")
            undo.append((registry, leaf, registry[leaf], owner))
            registry[leaf] = value
        yield
    finally:
        for registry, leaf, old, owner in reversed(undo):
            # A buffer that the call itself replaced is handed back to the caller's dict.
            current = registry[leaf]
            name = next(
                (key for key, value in given.items() if key.rpartition(".")[2] == leaf and value is current), None
            )
            if name is None:
                for key in given:
                    path, _, tail = key.rpartition(".")
                    if tail == leaf and module.get_submodule(path) is owner and key in parameters_and_buffers:
                        parameters_and_buffers[key] = current
            registry[leaf] = old


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"Expected a torch.nn.Module, got {type(module)}")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated name of `torchlite.func.functional_call`: call `module` with the given parameters and buffers, by
    name, in place of its own.
    """
    import warnings

    warnings.warn(
        "This API is deprecated as of PyTorch 2.0. Please use `torch.func.functional_call` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
