"""Tracing, switched off."""

from __future__ import annotations

import functools
from typing import Any

from ._modules import ScriptModule

__all__ = [
    "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError", "is_tracing", "trace", "trace_module",
]  # fmt: skip


class TracerWarning(Warning):
    """What tracing warns of."""


class TracingCheckError(Exception):
    """What tracing raises where a second run differs."""


class TracedModule(ScriptModule):
    """What `trace` makes of a module where there is TorchScript."""


class TopLevelTracedModule(TracedModule):
    """What `trace` returns for a module where there is TorchScript."""


def is_tracing() -> bool:
    """Whether the function that calls this is being traced: never."""
    return False


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself."""
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself."""
    return mod


def _script_if_tracing(fn: Any) -> Any:
    """A function that would be scripted when it is first traced."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> Any:
    """Refuses: no graph is traced."""
    raise NotImplementedError("torch.jit._get_trace_graph: torchlite does not trace programs yet")
