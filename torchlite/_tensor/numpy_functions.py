"""NumPy functions called on Tensors: they run as the torch ops of the same meaning, so they are differentiable and give
Tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import NAMESPACES, call, function_for

if TYPE_CHECKING:
    from .tensor import Tensor

# NumPy's name -> torch's, where they differ.
_UFUNCS = {
    "negative": "neg", "absolute": "abs", "fabs": "abs", "power": "pow", "float_power": "float_power", "divide": "div",
    "true_divide": "div", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arccosh": "acosh", "arcsinh": "asinh",
    "arctanh": "atanh", "arctan2": "atan2", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "invert": "bitwise_not", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "rint": "round", "conjugate": "conj", "mod": "remainder",
    "degrees": "rad2deg", "radians": "deg2rad",
}  # fmt: skip
_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "amax",
    "minimum": "amin",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}
# NumPy's keyword -> torch's.
_KEYWORDS = {
    "axis": "dim", "keepdims": "keepdim", "axes": "dims", "axis1": "dim1", "axis2": "dim2", "a": "input", "x": "input",
    "arrays": "tensors", "arr": "input", "m": "input", "array": "input", "ary": "input", "newshape": "shape",
    "reps": "dims", "decimals": "decimals", "ddof": "correction", "source": "source", "destination": "destination",
    "shift": "shifts", "k": "k",
}  # fmt: skip
_FUNCTIONS = {
    "concatenate": "cat", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin", "around": "round",
    "round": "round", "expand_dims": "unsqueeze", "moveaxis": "movedim", "vdot": "vdot", "nan_to_num": "nan_to_num",
    "clip": "clamp", "array_split": "tensor_split", "concat": "cat", "argwhere": "argwhere",
    "broadcast_arrays": "broadcast_tensors", "row_stack": "vstack", "product": "prod", "matrix_transpose": "adjoint",
}  # fmt: skip


def _torch(name: str):
    record = NAMESPACES["torch"].get(name) or NAMESPACES["Tensor"].get(name)
    return None if record is None else function_for(record)


def _tensor(value: Any, like: Tensor) -> Any:
    """Arrays beside a Tensor become Tensors on its device; numbers stay."""
    if isinstance(value, np.ndarray):
        from .creation import as_tensor

        return as_tensor(value, device=like.device)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return type(value)(_tensor(v, like) for v in value)
    return value


def _first(values) -> Tensor | None:
    for value in values:
        if isinstance(value, call.Tensor):
            return value
        if isinstance(value, list | tuple):
            found = _first(value)
            if found is not None:
                return found
    return None


def array_ufunc(ufunc, method, inputs, kwargs):
    """`ufunc(*inputs)` where one is a Tensor: the torch op; an `out=` array gets the values."""
    out = kwargs.pop("out", None)
    like = _first((inputs, out))
    assert like is not None
    name = ufunc.__name__
    if method == "__call__":
        function = _torch(_UFUNCS.get(name, name))
        if function is None or kwargs:
            return NotImplemented
        result = function(*(_tensor(v, like) for v in inputs))
    elif method in ("reduce", "accumulate"):
        function = _torch((_REDUCE if method == "reduce" else _ACCUMULATE).get(name, ""))
        if function is None:
            return NotImplemented
        axis = kwargs.get("axis", 0)
        more = {"keepdim": True} if kwargs.get("keepdims") else {}
        result = function(inputs[0], **({} if axis is None else {"dim": axis}), **more)
    else:
        return NotImplemented
    return result if out is None else _write(result, out)


def _write(result, out):
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(targets, results, strict=True):
        if isinstance(target, call.Tensor):
            target.copy_(value)
        elif target is not None:
            target[...] = value.detach().cpu().numpy()
    return targets[0] if len(targets) == 1 else targets


def _transpose(a, axes=None):
    return a.permute(*(axes if axes is not None else reversed(range(a.ndim))))


def _mean(function_name: str):
    def call(a, axis=None, dtype=None, out=None, keepdims=False, **kwargs):
        function = _torch(function_name)
        more = {"correction": kwargs.pop("ddof", 0)} if function_name in ("std", "var") else {}
        if kwargs:
            return NotImplemented
        return function(
            a if dtype is None else a.to(_dtype(dtype)),
            **({"dim": axis} if axis is not None else {}),
            **({"keepdim": True} if keepdims else {}),
            **more,
        )

    return call


def _dtype(d):
    from .._types.dtypes import from_np

    return d if d.__class__.__name__ == "dtype" and hasattr(d, "category") else from_np(np.dtype(d))


def _like(name: str):
    def call(a, dtype=None, order="K", subok=True, shape=None, **kwargs):
        return _torch(name)(a, dtype=None if dtype is None else _dtype(dtype))

    return call


def _shape(a):
    return tuple(a.shape)


def _where(condition, x=None, y=None):
    function = _torch("where")
    return function(condition) if x is None else function(condition, x, y)


def _stack(name: str):
    def call(arrays, axis=0, out=None, **kwargs):
        function = _torch(name)
        if axis is None:
            return function([a.reshape(-1) for a in arrays], 0)
        return function(list(arrays), axis)

    return call


def _dot(a, b, out=None):
    """NumPy's dot: over the last dimension of a and the last but one of b."""
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return (
        _torch("matmul")(a, b)
        if a.ndim <= 2 and b.ndim <= 2
        else _torch("tensordot")(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))
    )


def _plain(value):
    return value.detach().numpy() if isinstance(value, call.Tensor) else value


_SPECIAL = {
    "dot": _dot,
    "transpose": _transpose,
    "mean": _mean("mean"),
    "sum": _mean("sum"),
    "prod": _mean("prod"),
    "std": _mean("std"),
    "var": _mean("var"),
    "zeros_like": _like("zeros_like"),
    "ones_like": _like("ones_like"),
    "empty_like": _like("empty_like"),
    "shape": _shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.numel() if axis is None else a.shape[axis],
    "where": _where,
    "concatenate": _stack("cat"),
    "concat": _stack("cat"),
    "stack": _stack("stack"),
    "copy": lambda a, order="K", subok=False: a.clone(),
    "iscomplexobj": lambda x: x.is_complex(),
    "isrealobj": lambda x: not x.is_complex(),
    "array_equal": lambda a1, a2, equal_nan=False: bool(_torch("equal")(a1, a2)),
    "allclose": lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: bool(
        _torch("allclose")(a, b, rtol, atol, equal_nan)
    ),
    "swapaxes": lambda a, axis1, axis2: a.transpose(axis1, axis2),
    "array_repr": lambda arr, *args: repr(arr),
    "array_str": lambda a, *args: str(a),
    "full_like": lambda a, fill_value, dtype=None, **kwargs: _torch("full_like")(
        a, fill_value, dtype=None if dtype is None else _dtype(dtype)
    ),
    "result_type": lambda *args: np.result_type(*(a.dtype.np if isinstance(a, call.Tensor) else a for a in args)),
    "may_share_memory": lambda a, b, max_work=None: np.may_share_memory(_plain(a), _plain(b)),
    "shares_memory": lambda a, b, max_work=None: np.shares_memory(_plain(a), _plain(b)),
}


def _find(function):
    name = function.__name__
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    module = function.__module__.removeprefix("numpy").lstrip(".")
    if module in ("linalg", "fft"):
        names = NAMESPACES.get(module, {})
        record = names.get(name)
        return None if record is None else function_for(record)
    return _torch(_FUNCTIONS.get(name, name))


def array_function(function, args, kwargs):
    """A NumPy function called with a Tensor: the torch function of the same meaning; TypeError (NotImplemented) where
    there is none.
    """
    like = _first((args, tuple(kwargs.values())))
    found = _find(function)
    if found is None or like is None:
        return NotImplemented
    out = kwargs.pop("out", None)
    args = tuple(_tensor(a, like) for a in args)
    kwargs = {k: _tensor(v, like) for k, v in kwargs.items() if v is not np._NoValue}
    if found not in _SPECIAL.values():
        kwargs = {
            _KEYWORDS.get(k, k): v for k, v in kwargs.items() if not (k in ("axis", "dtype", "out") and v is None)
        }
    result = found(*args, **kwargs)
    if result is NotImplemented:
        return NotImplemented
    return result if out is None else _write(result, out)
