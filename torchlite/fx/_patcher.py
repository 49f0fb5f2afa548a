"""`torch.fx.wrap`, and ProgramTrace, which patches functions and modules during symbolic tracing."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torchlite.nn.functional as functional

from .._dispatch.tracing import THREAD, Trace, unwrap_traced
from ..utils._pytree import tree_leaves
from ._compatibility import compatibility
from .proxy import Proxy

# Arguments of `wrap`, by id of the module's globals and name.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def find_proxy(*values: Any) -> Proxy | None:
    """Return the first Proxy among values and in containers."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, Proxy):
            return leaf
        if isinstance(leaf, slice):
            found = find_proxy(leaf.start, leaf.stop, leaf.step)
            if found is not None:
                return found
    return None


def pass_defaults_by_keyword(
    defaults: dict[str, Any], required: Any, args: Any, kwargs: Any
) -> tuple[tuple, dict[str, Any]]:
    """Return arguments as PyTorch's Python functions pass them on: all defaulted parameters by keyword.

    defaults: by parameter name in order, with `required` for none.
    """
    given = {**dict(zip(defaults, args, strict=False)), **kwargs}
    if len(args) > len(defaults) or not given.keys() <= defaults.keys():
        return tuple(args), kwargs
    first = [name for name, default in defaults.items() if default is required]
    if not all(name in given for name in first):
        return tuple(args), kwargs
    rest = {name: given.get(name, default) for name, default in defaults.items() if default is not required}
    return tuple(given[name] for name in first), rest


def wrap_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that creates a node if an argument is a Proxy; generated code wraps it too."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _wrap_method(cls: type, name: str) -> Callable[..., Any]:
    """Return a method wrapped like `wrap_function`. It stays bound to its class, and other values call the original."""
    function = getattr(cls, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace = THREAD.trace
        found = trace.method(name, args, kwargs) if isinstance(trace, ProgramTrace) else NotImplemented
        return function(*args, **kwargs) if found is NotImplemented else found

    wrapped._makes_nodes = True  # type: ignore[attr-defined]
    return wrapped


class FunctionTrace(Trace):
    """Trace that handles functions with Proxies outside torch's ops.

    wrapped: ids of functions to record as one call. searched: modules that contain some of them.
    """

    def __init__(self, wrapped: set[int], searched: Iterable[ModuleType] = ()) -> None:
        super().__init__()
        self.wrapped = wrapped
        self._seen: set[int] = set()
        for module in searched:
            for value in list(vars(module).values()):
                if callable(value) and id(value) in wrapped:
                    self.replaced[id(value)] = wrap_function(value)
        self._views = {id(module) for module in searched if module.__name__ in sys.stdlib_module_names}
        self._searched = [vars(module) for module in (*searched, functional) if id(module) not in self._views]

    def wrap_marked(self) -> None:
        """Wrap the arguments of `wrap`, and the marked functions of the searched modules."""
        for (_, name), names in list(_wrapped_fns_to_patch.items()):
            function = unwrap_traced(names.get(name, getattr(builtins, name, None)))
            if function is None:
                raise KeyError(name)
            self._wrap_function(names, name, function)
        for names in self._searched:
            self.search(names)
        for cls, name in _wrapped_methods_to_patch:
            if not getattr(getattr(cls, name), "_makes_nodes", False):
                setattr(cls, name, _wrap_method(cls, name))

    def _wrap_function(self, names: dict[str, Any], name: str, function: Any) -> None:
        self.replaced.setdefault(id(function), wrap_function(function))
        self.rebind(names, name, function)

    def search(self, names: dict[str, Any]) -> None:
        """Wrap the marked functions among a module's globals."""
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        for name, value in list(names.items()):
            value = unwrap_traced(value)
            if id(value) in self._views:
                self.rebind(names, name, value)
            elif not name.startswith("_") and callable(value) and id(value) in self.wrapped:
                self._wrap_function(names, name, value)

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Return a node's Proxy, if an argument is a Proxy. function: an op of `torch.ops`, or a name in
        torch.nn.functional, with all arguments by keyword.
        """
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return NotImplemented
        if isinstance(function, str):
            function = vars(functional)[function]
            defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
            args, kwargs = pass_defaults_by_keyword(defaults, inspect.Parameter.empty, args, kwargs)
        return type(proxy).__torch_function__(function, (), args, kwargs)

    def method(self, name: str, args: tuple, kwargs: dict) -> Any:
        """Return a node's Proxy, if an argument of a Tensor method is a Proxy."""
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return super().method(name, args, kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)


class ProgramTrace(FunctionTrace):
    """Trace of a Tracer. tracer: handles module calls, and the attributes of modules."""

    calls_modules = True

    def __init__(self, tracer: Any, wrapped: set[int], searched: list[ModuleType]) -> None:
        super().__init__(wrapped, searched)
        self.tracer = tracer
        self._proxies: dict[str, Proxy] = {}  # by attribute name

    def __enter__(self) -> ProgramTrace:
        super().__enter__()
        try:
            self.wrap_marked()
        except BaseException:
            self.__exit__()
            raise
        return self

    def call_module(self, module: Any, call: Any, args: tuple, kwargs: dict) -> Any:
        """Return the tracer's result of a module call."""
        self.search(getattr(getattr(module, "forward", module), "__globals__", {}))
        return self.tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

    def read(self, name: str, value: Any) -> Any:
        """Return the tracer's value of a module attribute."""
        return self.tracer.getattr(name, value, self._proxies)


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Suspend tracing in this thread within the context."""
    before, THREAD.trace = THREAD.trace, None
    try:
        yield
    finally:
        THREAD.trace = before


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: Any) -> Any:
    """Marks a function of a module's top level as one call in traced graphs.

    The function is not traced into.

    Args:
        fn_or_name: The function, or its name.

    Returns:
        The argument, so that it works as a decorator.

    Raises:
        NotImplementedError: It is called inside a function.
        RuntimeError: The argument is neither a function nor a name.

    Example:
        >>> _ = torch.fx.wrap("len")
        >>> def halved(values):
        ...     return len(values) / 2
        >>> [node.name for node in torch.fx.symbolic_trace(halved).graph.nodes]
        ['values', 'len_1', 'truediv', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name
