"""NumPy functions called on Tensors, with NumPy's meaning. Those that torch's ops implement (`numpy_implementations`,
and the ufuncs here) are differentiable and return Tensors. All others run on arrays and return NumPy's result, as in
PyTorch, which refuses that for a Tensor that requires grad or is on another device.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import NAMESPACES, call, function_for
from .._dispatch.public_functions import torch
from .._types import dtypes
from . import numpy_linalg  # noqa: F401  (fills the table)
from .numpy_implementations import IMPLEMENTATIONS, UnsupportedArgument, dtype_of, to_tensor

# NumPy's name -> torch's, where they differ.
_UFUNCS = {
    "negative": "neg", "absolute": "abs", "fabs": "abs", "power": "pow", "float_power": "pow", "divide": "div",
    "true_divide": "div", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arccosh": "acosh", "arcsinh": "asinh",
    "arctanh": "atanh", "arctan2": "atan2", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "invert": "bitwise_not", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "rint": "round", "conjugate": "conj", "mod": "remainder",
    "degrees": "rad2deg", "radians": "deg2rad", "conj": "conj",
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
# Ufuncs that are several ops.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "sign": lambda x: torch.where(torch.ne(x, x), x, torch.sgn(x)),  # of NaN it is NaN
    "cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
    "divmod": lambda x, y: (torch.floor_divide(x, y), torch.remainder(x, y)),
    "heaviside": lambda x, y: torch.where(torch.ne(x, x), x, torch.heaviside(x, y)),
    "modf": lambda x: (
        torch.copysign(torch.where(torch.isinf(x), torch.zeros_like(x), torch.sub(x, torch.trunc(x))), x),
        torch.trunc(x),
    ),
    "vecdot": lambda x, y: torch.sum(torch.conj(x) * y, -1),
    "matvec": lambda x, y: torch.matmul(x, y.unsqueeze(-1))[..., 0],
    "vecmat": lambda x, y: torch.matmul(torch.conj(x).unsqueeze(-2), y)[..., 0, :],
}
# Those whose ops take operands of one dtype only.
_PRODUCTS = ("matmul", "matvec", "vecmat")


# -- ufuncs -------------------------------------------------------------------------------------------


def array_ufunc(ufunc: Any, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """`ufunc(*inputs)` and its methods where one argument is a Tensor."""
    out = kwargs.pop("out", None)
    kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue and v is not None or k == "axis"}
    result = NotImplemented
    if not out or not _extract_mask_arguments(kwargs):
        result = _run_ufunc_by_ops(ufunc, method, inputs, dict(kwargs))
    if result is not NotImplemented:
        return _resolve_conj_neg(result) if out is None else _write_out(_resolve_conj_neg(result), out)
    _check_no_gradient_is_lost(ufunc, inputs)
    result = _call_on_arrays(getattr(ufunc, method), inputs, kwargs if out is None else {**kwargs, "out": out})
    return result if out is not None or result is NotImplemented else _as_tensors(result)


def _check_no_gradient_is_lost(ufunc: Any, inputs: tuple) -> None:
    """RuntimeError before a ufunc runs on the array of a Tensor that requires grad."""
    if call.MODE.grad and any(isinstance(v, call.Tensor) and v.requires_grad for v in inputs):
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. (This call of the "
            f"ufunc '{ufunc.__name__}' is not differentiable: torch has no op for it.)"
        )


def _as_tensors(result: Any) -> Any:
    """Convert a ufunc's array results to Tensors (as PyTorch's `__array_wrap__` does), if torch has the dtype."""
    from .._tensor.creation import as_tensor

    if isinstance(result, tuple):
        return tuple(map(_as_tensors, result))
    return as_tensor(result) if getattr(result, "dtype", None) in dtypes.FROM_NUMPY else result


def _extract_mask_arguments(kwargs: dict[str, Any]) -> bool:
    return kwargs.get("where", True) is not True


def _run_ufunc_by_ops(ufunc: Any, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    if method == "__call__":
        return NotImplemented if kwargs else _call_ufunc(ufunc, inputs)
    if method == "outer" and not kwargs:
        a, b = (np.asarray(v) if not isinstance(v, call.Tensor) else v for v in inputs)
        return _call_ufunc(ufunc, (a.reshape((*a.shape, *(1,) * b.ndim)), b))
    if method == "reduce" and ufunc.__name__ in _REDUCE and len(inputs) <= 3:
        names = ("array", "axis", "dtype")
        given = {"axis": 0, **dict(zip(names[1:], inputs[1:], strict=False)), **kwargs}
        if not given.keys() <= {"axis", "dtype", "keepdims"} or given["axis"] == () or not inputs[0].ndim:
            return NotImplemented
        return IMPLEMENTATIONS[_REDUCE[ufunc.__name__]](inputs[0], **given)
    if method == "accumulate" and ufunc.__name__ in _ACCUMULATE and len(inputs) == 1 and kwargs.keys() <= {"axis"}:
        return IMPLEMENTATIONS[_ACCUMULATE[ufunc.__name__]](inputs[0], kwargs.get("axis", 0))
    return NotImplemented


def _call_ufunc(ufunc: Any, inputs: tuple) -> Any:
    """A ufunc as torch's op. With arrays or NumPy's numbers among its operands this is how `array + tensor` arrives,
    which has torch's dtypes; among Tensors and Python's numbers it has NumPy's.
    """
    name = ufunc.__name__
    function = _COMPOSED.get(name) or _find_function(_UFUNCS.get(name, name))
    like = next(v for v in inputs if isinstance(v, call.Tensor))
    if function is None:
        function = _find_special(name, like.is_complex())
        if function is None:
            return NotImplemented
        inputs = tuple(to_tensor(v, like) if isinstance(v, (np.ndarray, np.generic, list)) else v for v in inputs)
    if not any(isinstance(v, (np.ndarray, np.generic, list, tuple)) for v in inputs):
        kinds = _find_loop_dtypes(ufunc, inputs)
        if kinds is None:
            return NotImplemented
        inputs = tuple(
            v.to(k) if isinstance(v, call.Tensor) else torch.full((), v, dtype=k, device=like.device)
            for v, k in zip(inputs, kinds, strict=False)
        )
        result = function(*inputs)
        kind = kinds[-1]
        if isinstance(result, call.Tensor):
            return result if result.dtype is kind else result.to(kind)
        return result
    operands = [_convert_operand(v, like) for v in inputs]
    if name in _PRODUCTS and all(isinstance(v, call.Tensor) for v in operands):
        common = dtypes.promote_types(*(v.dtype for v in operands))
        operands = [v.to(common) for v in operands]
    return function(*operands)


def _find_loop_dtypes(ufunc: Any, inputs: tuple) -> list[Any] | None:
    """The dtypes in which NumPy computes a ufunc of these operands, its result's last; None where it has none."""
    return _resolve_loop(ufunc, tuple(v.dtype if isinstance(v, call.Tensor) else type(v) for v in inputs))


@functools.lru_cache(1024)
def _resolve_loop(ufunc: Any, kinds: tuple[Any, ...]) -> list[Any] | None:
    if not all(k in (bool, int, float, complex) or isinstance(k, dtypes.dtype) for k in kinds):
        return None
    given = tuple(k.np if isinstance(k, dtypes.dtype) else np.dtype(bool) if k is bool else k for k in kinds)
    try:
        return [dtype_of(d) for d in ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout))]
    except (TypeError, UnsupportedArgument):
        return None


def _convert_operand(value: Any, like: Any) -> Any:
    """Convert arrays and lists in a call with Tensors to Tensors on their device, and NumPy's numbers to Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.ndarray, list, tuple)):
        from .._tensor.creation import as_tensor

        return as_tensor(call.to_native_strides(np.asarray(value)), device=like.device)
    return value


@functools.cache
def _find_function(name: str) -> Any:
    record = NAMESPACES["torch"].get(name)
    return None if record is None else function_for(record)


def _find_special(name: str, is_complex: bool) -> Any:
    """Return the function for a ufunc of `scipy.special`, None if torch has none."""
    if "scipy" not in sys.modules:
        return None
    from .scipy_special import find_special

    return find_special(name, is_complex)


# Whose callers want arrays, as they get from PyTorch's Tensors: they go on with arrays' methods and dtypes.
_COERCING = {"atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "ravel"}


def _are_arrays(args: tuple) -> bool:
    """True if all Tensors are on the CPU and require no gradient."""
    found = [a for a in args if isinstance(a, call.Tensor)]
    return all(a.is_cpu and not a.requires_grad for a in found)


# -- functions ----------------------------------------------------------------------------------------


@functools.cache
def _find_implementation(name: str) -> tuple[Any, inspect.Signature] | None:
    found = IMPLEMENTATIONS.get(name)
    return None if found is None else (found, inspect.signature(found))


def array_function(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Implements `__array_function__`: by ops if they support the call, else on arrays."""
    module = (function.__module__ or "").removeprefix("numpy").lstrip(".").partition(".")[0]
    name = f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__
    given = {k: v for k, v in kwargs.items() if v is not np._NoValue}
    if name in _COERCING and _are_arrays(args):
        return function(*_as_arrays(args, {}), **given)
    form = _find_implementation(name)
    if form is not None:
        result = _call_implementation(*form, args, given)
        if result is not NotImplemented:
            return _resolve_conj_neg(result)
    return _call_on_arrays(function, args, given)


def _call_implementation(function: Any, signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]) -> Any:
    args, kwargs = _to_python_integers(args), {k: _to_python_integers(v) for k, v in kwargs.items()}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return NotImplemented
    out = bound.arguments.pop("out", None)
    first = next(iter(bound.arguments.values()), None)
    if isinstance(first, (np.ndarray, int, float, complex)):  # the Tensor came second
        like = next((v for v in bound.arguments.values() if isinstance(v, call.Tensor)), None)
        if like is None:
            return NotImplemented
        bound.arguments[next(iter(bound.arguments))] = _convert_operand(np.asarray(first), like)
    elif not isinstance(first, (call.Tensor, tuple, list, str)) and not hasattr(first, "__iter__"):
        return NotImplemented
    try:
        result = function(*bound.args, **bound.kwargs)
    except UnsupportedArgument:
        return NotImplemented
    return result if out is None or result is NotImplemented else _write_out(result, out)


def _to_python_integers(value: Any) -> Any:
    """Convert NumPy integers, which are axes or lengths, to Python's."""
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_to_python_integers, value))
    return value


def _resolve_conj_neg(result: Any) -> Any:
    """Without conjugate or negative bits, which NumPy does not know."""
    if type(result) in (tuple, list):
        return type(result)(map(_resolve_conj_neg, result))
    if isinstance(result, call.Tensor) and type(result) is not call.Tensor:
        return result.resolve_conj().resolve_neg()
    return result


def _write_out(result: Any, out: Any) -> Any:
    """The result into `out`, Tensors or arrays, which is returned."""
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(targets, results, strict=True):
        if isinstance(target, call.Tensor):
            if target.shape != value.shape:
                raise ValueError(f"output array has shape {tuple(target.shape)}, not {tuple(value.shape)}")
            target.copy_(value)
        elif target is not None:
            if target.shape != tuple(value.shape):
                raise ValueError(f"output array has shape {target.shape}, not {tuple(value.shape)}")
            target[...] = value._host_array()
    return targets[0] if len(targets) == 1 else targets


# -- through arrays -------------------------------------------------------------------------------------


def _call_on_arrays(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call NumPy's function on the Tensors' arrays, which share their memory, so that writes reach the Tensors.
    RuntimeError if one requires grad, TypeError if one is on another device.
    """
    shared: dict[int, Any] = {}
    args, kwargs = _as_arrays(args, shared), _as_arrays(kwargs, shared)
    if not shared:
        return NotImplemented
    result = function(*args, **kwargs)
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(shared.get(id(r), r) for r in result)
    return shared.get(id(result), result)


def _as_arrays(value: Any, shared: dict[int, Any]) -> Any:
    if isinstance(value, call.Tensor):
        array = value._host_array()
        if array is value._tl_array:
            array = array.view()  # an object of this call's own
        shared[id(array)] = value
        return array
    if isinstance(value, dtypes.dtype):
        return value.np
    if type(value) in (list, tuple):
        return type(value)([_as_arrays(v, shared) for v in value])
    if type(value) is dict:
        return {k: _as_arrays(v, shared) for k, v in value.items()}
    return value
