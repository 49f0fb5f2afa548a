"""`contract`: decorator for functions that transform a module in place, at most once, with a state per module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite import nn

_REGISTRY_ATTRIBUTE = "_composable_applied"  # in a module's __dict__: by a function's name, its state


class _State:
    """State of a function for one module."""


def _qualified_names(module: nn.Module) -> tuple[list[str], list[str], list[str]]:
    return (
        [name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()],
        [name for name, _ in module.named_modules()],
    )  # fmt: skip


def contract(state_cls: type = _State) -> Callable[[Callable[..., Any]], Any]:
    """Decorate `function(module, ...)` so that it applies to a module (or list of modules) at most once.

    The module must keep the names of its parameters, buffers and modules. `function.state(module)` returns the
    `state_cls` created before the call; None if the function was not applied.

    >>> import torchlite as torch
    >>> from torchlite.distributed._composable import contract
    >>> @contract()
    ... def freeze(module):
    ...     contracted = freeze.state(module)
    ...     contracted.was = module.weight.requires_grad
    ...     return module.requires_grad_(False)
    >>> freeze.state(freeze(torch.nn.Linear(1, 1))).was
    True
    """

    def make_contract(function: Callable[..., Any]) -> Any:
        name = function.__name__

        @functools.wraps(function)
        def apply_once(module: Any, *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, nn.Module) else list(module)
            state, before = state_cls(), [_qualified_names(each) for each in modules]
            for each in modules:
                known = each.__dict__.setdefault(_REGISTRY_ATTRIBUTE, {})
                if name in known:
                    raise AssertionError(
                        "Each distinct composable distributed API can only be applied to a module once. "
                        f"{name} has already been applied to the following module:\n{each}"
                    )
                known[name] = state
            updated = function(module, *args, **kwargs)
            _check_names_unchanged(before, modules if updated is None else _as_module_list(updated))
            return module if updated is None else updated

        apply_once.state = lambda module: module.__dict__.get(_REGISTRY_ATTRIBUTE, {}).get(name)  # type: ignore[attr-defined]
        return apply_once

    return make_contract


def _as_module_list(modules: Any) -> list[nn.Module]:
    return [modules] if isinstance(modules, nn.Module) else list(modules)


def _check_names_unchanged(before: list[Any], modules: list[nn.Module]) -> None:
    for names, module in zip(before, modules, strict=True):
        for kind, old, new in zip(("parameters", "buffers", "modules"), names, _qualified_names(module), strict=True):
            if old != new:
                raise RuntimeError(
                    f"Checking {kind}: Composable distributed API implementations cannot modify FQNs.\n"
                    f"FQNs only in original: {set(old) - set(new)}\nFQNs only in new: {set(new) - set(old)}"
                )


def _get_registry(module: nn.Module) -> dict[str, Any] | None:
    """Return the functions applied to a module, by name; None if there are none."""
    return module.__dict__.get(_REGISTRY_ATTRIBUTE)
