"""Functions on quantized tensors that interceptors see as ops of PyTorch's library: traces and dispatch modes. Classes
with `__torch_function__` see the functions.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .._dispatch.dispatch_state import GLOBALS
from .._dispatch.interceptors import call_function_mode, call_library_interceptor, call_override, stack
from .._library.library_op import LibraryOp

_OPS: dict[Any, LibraryOp] = {}  # by overload


def _library_op(name: str, function: Any, values: tuple) -> LibraryOp:
    """Return the op of the library that takes these values."""
    from .._aten import ops

    overload = getattr(ops.aten, name).resolve_overload(values, {})
    if overload not in _OPS:
        op = _OPS[overload] = LibraryOp(overload._schema)
        op.overload, op.shown = overload, str(overload)
        op.kernels["CompositeExplicitAutograd"] = function
    return _OPS[overload]


def dispatched(function: Callable) -> Callable:
    """Let interceptors see the calls of a function that has the name and the parameters of an op."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if (found := call_override(run, args, kwargs or None)) is not NotImplemented:
            return found
        if not GLOBALS["INTERCEPTORS"] or not stack.items:
            return function(*args, **kwargs)
        found = call_function_mode(run, args, kwargs)
        if found is not NotImplemented:
            return found
        values = tuple(signature.bind(*args, **kwargs).arguments.values())
        op = _library_op(function.__name__, function, values)
        found = call_library_interceptor(op, function, values, {})
        return function(*values) if found is NotImplemented else found

    return run
