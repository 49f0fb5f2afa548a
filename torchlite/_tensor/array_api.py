"""The Array-API namespace of Tensors: what `x.__array_namespace__()` gives."""

from __future__ import annotations

from typing import Any

from .._dispatch.codegen import namespace_function
from .._dispatch.record import NAMESPACES
from .._types import devices, dtypes
from . import creation, functions

_NAMES = {
    "acos": "acos", "concat": "cat", "permute_dims": "permute", "expand_dims": "unsqueeze", "pow": "pow",
    "bitwise_invert": "bitwise_not", "max": "amax", "min": "amin", "matrix_transpose": "adjoint", "astype": "",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "negative": "neg", "divide": "div", "subtract": "sub", "multiply": "mul", "remainder": "remainder",
    "atan2": "atan2", "broadcast_arrays": "broadcast_tensors", "unstack": "unbind", "cumulative_sum": "cumsum",
    "cumulative_prod": "cumprod",
}  # fmt: skip
_REDUCTIONS = {
    "sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "std", "var", "cumsum", "cumprod", "cat",
    "stack", "unsqueeze", "squeeze", "flip", "roll", "sort", "argsort", "unbind", "tensordot", "vecdot",
    "count_nonzero", "take",
}  # fmt: skip
pi, e, inf, nan, newaxis = 3.141592653589793, 2.718281828459045, float("inf"), float("nan"), None


def astype(x, dtype, /, *, copy=True, device=None):
    """The array with another dtype."""
    return x.to(dtype=dtype, device=device, copy=copy)


def isdtype(dtype, kind) -> bool:
    """Whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
    floating", "numeric"; or one of several.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return dtype is kind
    category = dtype.category
    return {
        "bool": category == 0,
        "signed integer": category == 1 and dtype.is_signed,
        "unsigned integer": category == 1 and not dtype.is_signed,
        "integral": category == 1,
        "real floating": category == 2,
        "complex floating": category == 3,
        "numeric": category > 0,
    }[kind]


def _find(name: str) -> Any:
    """A function of torch, a dtype, or one of the modules `fft` and `linalg`. AttributeError when there is none."""
    if name in NAMESPACES["torch"]:
        return namespace_function("torch", name)
    if name in ("bool", *dtypes.ALL):
        return dtypes.ALL[name]
    if name in ("fft", "linalg"):
        from .. import fft, linalg

        return {"fft": fft, "linalg": linalg}[name]
    for module in (creation, functions, dtypes, devices):
        if hasattr(module, name) and not name.startswith("_"):
            return getattr(module, name)
    raise AttributeError(f"the Array API namespace has no attribute '{name}'")


def __getattr__(name: str) -> Any:
    torch_name = _NAMES.get(name, name)
    found = _find(torch_name)
    if torch_name not in _REDUCTIONS:
        return found

    def with_axis(*args, axis=None, keepdims=None, correction=None, **kwargs):
        if axis is not None:
            kwargs["dim"] = axis
        if keepdims is not None:
            kwargs["keepdim"] = keepdims
        if correction is not None:
            kwargs["correction"] = correction
        elif torch_name in ("std", "var"):
            kwargs["correction"] = 0
        return found(*args, **kwargs)

    with_axis.__name__ = name
    return with_axis
