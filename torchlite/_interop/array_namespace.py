"""The namespace that `x.__array_namespace__()` returns: `torchlite`, except for the functions to which the Array API
gives another meaning than PyTorch. This module defines those.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import linalg as torch_linalg
from .._dispatch import call
from .._dispatch.public_functions import torch
from .._tensor import array_api_functions, creation, tensor_queries
from .._tensor.array_api_functions import accumulation_dtype
from .._types import dtypes

if TYPE_CHECKING:
    Tensor = Any  # for checkers the stubs' class, which ops give, is another than the code's


def _as_array(number: Any, beside: Tensor) -> Any:
    """Convert a Python number to an array of the other operand's dtype, or of a default dtype if the number's kind is
    higher.
    """
    kind = beside.dtype if tensor_queries.result_type(beside.dtype, number).category == beside.dtype.category else None
    return torch.full((), number, dtype=kind, device=beside.device)


def _to_arrays(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, of which one may be a Python number: both as arrays."""
    if not isinstance(x1, call.Tensor):
        return _as_array(x1, x2), x2
    return x1, x2 if isinstance(x2, call.Tensor) else _as_array(x2, x1)


def _allow_scalars(name: str, torchs: str = "") -> Any:
    """PyTorch's function of two Tensors, for an array and a number too."""

    def function(x1: Any, x2: Any, /) -> Any:
        return getattr(torch, torchs or name)(*_to_arrays(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`torch.{name}`, which takes a Python number as one of its arguments too."
    return function


atan2, copysign, fmax, fmin, hypot, logaddexp, maximum, minimum, nextafter = map(
    _allow_scalars, ("atan2", "copysign", "fmax", "fmin", "hypot", "logaddexp", "maximum", "minimum", "nextafter")
)
logical_and, logical_or, logical_xor = map(_allow_scalars, ("logical_and", "logical_or", "logical_xor"))
# PyTorch's `equal` compares entire tensors; the other functions require a Tensor as the first operand.
equal, not_equal = _allow_scalars("equal", "eq"), _allow_scalars("not_equal")
less, less_equal, greater, greater_equal = map(_allow_scalars, ("less", "less_equal", "greater", "greater_equal"))


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; of NaN NaN, of complex numbers `x / abs(x)`."""
    return torch.where(x != x, x, torch.sgn(x)) if x.dtype.category >= dtypes.FLOAT else torch.sgn(x)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`torch.asarray`, which copies NumPy's arrays with negative steps instead of refusing them."""
    if isinstance(obj, np.ndarray) and builtins.any(step < 0 for step in obj.strides) and copy is not False:
        obj = np.ascontiguousarray(obj)
    return creation.asarray(obj, dtype=dtype, device=device, copy=copy)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The values in order, without their places."""
    return torch.sort(x, axis, descending, stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the values; stable by default."""
    return torch.argsort(x, axis, descending, stable=stable)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero, one array for each dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array of no dimensions has no places")
    return torch.nonzero(x, as_tuple=True)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Arrays of the coordinates; the first two dimensions are exchanged unless `indexing` is "ij"."""
    return list(torch.meshgrid(*arrays, indexing=indexing))


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """The order of the elements turned round along some axes, or all."""
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """The elements, those outside the bounds brought to them, in the dtype of `x`."""
    if min is None and max is None:
        return torch.clone(x)
    bounds = [b.to(x.dtype) if isinstance(b, call.Tensor) else b for b in (min, max)]
    if builtins.any(isinstance(b, call.Tensor) for b in bounds):
        bounds = [b if b is None else _to_arrays(x, b)[1] for b in bounds]
    return torch.clamp(x, *bounds)


def _make_var_or_std(name: str) -> Any:
    def function(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        if axis == ():
            return torch.zeros_like(x) if correction == 0 else torch.full_like(x, float("nan"))
        return getattr(torch, name)(x, axis, correction=correction, keepdim=keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`torch.{name}`, without Bessel's correction unless it is asked for."
    return function


std, var = map(_make_var_or_std, ("std", "var"))


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along some axes, or of all; of unsigned integers in uint64."""
    kind = accumulation_dtype(x, dtype)
    if axis == ():
        return x.to(kind) if kind is not None else torch.clone(x)
    return torch.sum(x, axis, keepdims, dtype=kind)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along some axes, or of all; of unsigned integers in uint64."""
    kind = accumulation_dtype(x, dtype)
    x = x if kind is None else x.to(kind)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for a in sorted((a % x.ndim for a in axes), reverse=True):
        x = torch.prod(x, a, keepdims, dtype=x.dtype)
    return x


def _allow_empty_and_several_axes(name: str) -> Any:
    """A reduction for which an empty tuple of axes means none, and several axes are allowed."""

    def function(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        if axis == ():
            return x.bool() if name in ("all", "any") else torch.clone(x)
        if axis is None:
            axis = tuple(range(x.ndim))
        return getattr(torch, name)(x, axis, keepdims) if axis != () else function(x, axis=())

    function.__name__ = function.__qualname__ = {"amax": "max", "amin": "min"}.get(name, name)
    function.__doc__ = f"`torch.{name}` along some axes, or of all."
    return function


all, any, max, min, mean = map(_allow_empty_and_several_axes, ("all", "any", "amax", "amin", "mean"))


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Number of nonzero elements along some axes, or of all elements."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along `axis`; flattened ones if it is None."""
    if axis is not None:
        return torch.cat(arrays, axis)
    return torch.cat([torch.reshape(a, (-1,)) for a in arrays], 0)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`fill_value` everywhere; PyTorch does not take a number as the shape."""
    return torch.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """From `start` in steps of `step` up to but without `stop`: nothing where that is the wrong way."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step < 0:
        stop = start = start + 0 * stop + 0 * step
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, of different dtypes too."""
    kind = dtypes.promote_types(x1.dtype, x2.dtype)
    return torch.matmul(x1.to(kind), x2.to(kind))


class _Linalg:
    """`torchlite.linalg`, but for three names."""

    matmul, vecdot = staticmethod(matmul), staticmethod(array_api_functions.vecdot)

    @staticmethod
    def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
        """The cross products along `axis`, counted from the end; the other dimensions broadcast."""
        kind = dtypes.promote_types(x1.dtype, x2.dtype)
        return torch_linalg.cross(*torch.broadcast_tensors(x1.to(kind), x2.to(kind)), dim=axis)

    @staticmethod
    def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
        """The solutions of `x1 @ x = x2`, for vectors where `x2` has one dimension."""
        kind = dtypes.promote_types(x1.dtype, x2.dtype)
        x1, x2 = x1.to(kind), x2.to(kind)
        return torch_linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1) if x2.ndim == 1 else torch_linalg.solve(x1, x2)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch_linalg, name)


linalg = _Linalg()
tensordot = array_api_functions.tensordot


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The promoted dtype of arrays, dtypes and Python numbers, regardless of the arrays' numbers of dimensions."""
    kinds = [getattr(a, "dtype", a) for a in arrays_and_dtypes]
    return tensor_queries.result_type(*kinds)


def median(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle value, or the mean of the two, along an axis, or of all. The standard has none, but libraries ask for
    what NumPy calls so.
    """
    return torch.quantile(x, 0.5, axis, bool(keepdims))


class finfo:
    """The limits of a floating-point dtype, or of an array's; the attribute `dtype` is a dtype, unlike PyTorch's, which
    is a name.
    """

    def __init__(self, type: Any, /):
        found = dtypes.finfo(getattr(type, "dtype", type))
        self.bits, self.eps, self.max, self.min = found.bits, found.eps, found.max, found.min
        self.smallest_normal, self.dtype = found.smallest_normal, dtypes.BY_NAME[found.dtype]


class iinfo:
    """The limits of an integer dtype, or of an array's; the attribute `dtype` is a dtype, unlike PyTorch's, which is a
    name.
    """

    def __init__(self, type: Any, /):
        found = dtypes.iinfo(getattr(type, "dtype", type))
        self.bits, self.max, self.min, self.dtype = found.bits, found.max, found.min, dtypes.BY_NAME[found.dtype]


def array_namespace() -> Any:
    """This module: the namespace of `Tensor.__array_namespace__`."""
    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("torchlite"), name)
