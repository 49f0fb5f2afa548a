"""Functions that are one call of a graph: they are patched where they stand while a tracer runs."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from ..utils._pytree import tree_leaves
from ._compatibility import compatibility
from .proxy import Proxy

__all__ = ["Patcher", "find_proxy", "wrap"]

# By a module's globals and a name, what `wrap` was told of.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
# Methods of Tensor that look at their arguments before they call an op.
_METHODS = ("__getitem__", "__setitem__", "to", "new_tensor")
_ABSENT = object()


def find_proxy(*values: Any) -> Proxy | None:
    """The first Proxy among values, or in containers of them."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, Proxy):
            return leaf
        if isinstance(leaf, slice):
            found = find_proxy(leaf.start, leaf.stop, leaf.step)
            if found is not None:
                return found
    return None


def by_keyword(defaults: dict[str, Any], required: Any, args: Any, kwargs: Any) -> tuple[tuple, dict[str, Any]]:
    """Arguments as PyTorch's functions in Python hand them on: what has a default by keyword, and all of these.

    defaults: by the parameters' names in order, with `required` where there is none.
    """
    given = {**dict(zip(defaults, args, strict=False)), **kwargs}
    if len(args) > len(defaults) or not given.keys() <= defaults.keys():
        return tuple(args), kwargs
    first = [name for name, default in defaults.items() if default is required]
    if not all(name in given for name in first):
        return tuple(args), kwargs
    rest = {name: given.get(name, default) for name, default in defaults.items() if default is not required}
    return tuple(given[name] for name in first), rest


def wrapped_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a node where an argument is a Proxy; the graph's code is to wrap it again."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def seen_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of torchlite's functions, which makes a node where an argument is a Proxy."""
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters}
    plain = all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if plain:
            args, kwargs = by_keyword(defaults, inspect.Parameter.empty, args, kwargs)
        return type(proxy).__torch_function__(function, (), args, kwargs)

    return wrapped


def _wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """As `wrapped_function`, of a method."""
    function = getattr(cls, name)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def called_op(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of an op of `torch.ops`, which makes a node of that op where an argument is a Proxy."""

    def wrapped(op: Any, /, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return call(op, *args, **kwargs)
        return type(proxy).__torch_function__(op, (), args, kwargs)

    return wrapped


class Patcher:
    """What is put in the place of attributes and of globals, until `undo`."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []
        self._seen: set[int] = set()

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Give a class another attribute."""
        self._done.append((owner, name, owner.__dict__.get(name, _ABSENT), value))
        setattr(owner, name, value)

    def item(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Give a module's globals another value under a name."""
        before = names.get(name, _ABSENT)
        if getattr(before, "__fx_already_patched", False):
            return
        value.__fx_already_patched = True
        self._done.append((names, name, before, value))
        names[name] = value

    def wrap_registered(self) -> None:
        """Patch all that `wrap` was told of."""
        for (_, name), names in list(_wrapped_fns_to_patch.items()):
            function = names.get(name, getattr(builtins, name, None))
            if function is None:
                raise KeyError(name)
            self.item(names, name, wrapped_function(function))
        for cls, name in (*((Tensor, name) for name in _METHODS), *_wrapped_methods_to_patch):
            self.attribute(cls, name, _wrapped_method(cls, name))

    def wrap_found(self, names: dict[str, Any], marked: set[int], plain: set[int]) -> None:
        """Patch the functions with these ids among a module's globals; those in `plain` the graph's code finds as they
        are.
        """
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        for name, value in list(names.items()):
            if name.startswith("_") or not callable(value):
                continue
            if id(value) in marked:
                self.item(names, name, wrapped_function(value))
            elif id(value) in plain:
                self.item(names, name, seen_function(value))

    def undo(self) -> None:
        """Put everything back, in reverse."""
        for owner, name, before, _ in reversed(self._done):
            _assign(owner, name, before)

    def redo(self) -> None:
        """Patch once more what `undo` put back."""
        for owner, name, _, value in self._done:
            _assign(owner, name, value)


def _assign(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        if value is _ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


_running: list[Patcher] = []


@contextmanager
def patching() -> Iterator[Patcher]:
    """A Patcher that is undone at the end."""
    patcher = Patcher()
    _running.append(patcher)
    try:
        yield patcher
    finally:
        patcher.undo()
        _running.remove(patcher)


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Within it, nothing is patched by the innermost tracer."""
    patcher = _running[-1] if _running else None
    if patcher is not None:
        patcher.undo()
    try:
        yield
    finally:
        if patcher is not None:
            patcher.redo()


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: Any) -> Any:
    """Have a function of a module be one call of the graph that a tracer makes: it is not traced into.

    fn_or_name: the function, or its name; so it is a decorator as well, and is returned. It is called where a module
    stands: NotImplementedError inside of functions, RuntimeError for what is neither a function nor a name.

        torch.fx.wrap("len")

        @torch.fx.wrap
        def gathered(values, index): ...
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name
