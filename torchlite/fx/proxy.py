"""What traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._types.names import is_ours
from ._later import later

__all__ = ["Interpreter", "Proxy", "TraceError", "Tracer", "Transformer", "symbolic_trace", "wrap"]


class TraceError(ValueError):
    """What cannot be traced."""


class Proxy:
    """What stands for a value while a program is traced: nothing is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("Proxy")


class Tracer:
    """Traces a module into a graph: not yet. Classes of a program may derive from it."""

    def __init__(
        self, autowrap_modules: Any = (), autowrap_functions: Any = (), param_shapes_constant: bool = False
    ) -> None:
        self.autowrap_modules, self.autowrap_functions = autowrap_modules, autowrap_functions
        self.param_shapes_constant = param_shapes_constant

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module is one call of the graph: torch.nn's are."""
        return is_ours(type(m)) and type(m).__name__ != "Sequential"

    def trace(self, root: Any, concrete_args: Any = None) -> Any:
        """NotImplementedError: torchlite does not trace programs yet."""
        raise later("Tracer.trace")


class Interpreter:
    """Runs a graph node by node: there are none yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise later("Interpreter")


class Transformer(Interpreter):
    """Writes a graph anew: there are none yet."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """NotImplementedError: torchlite does not trace programs yet."""
    raise later("symbolic_trace")


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Have a function of a module be one call of the graph that a tracer makes; it is returned. RuntimeError for
    what is neither a function nor a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name
