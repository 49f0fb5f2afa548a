"""Reductions, scans and normalisations that ignore masked-out elements, as `torch.masked`.

Every function takes `mask=`: a bool tensor that broadcasts to `input`, true where an element counts; None means all
elements. A reduction of no elements returns its identity (zero for a sum, NaN for a mean).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torchlite._settings.module_dir import make_module_dir

from .._dispatch import F
from .._dispatch.shape_and_value_checks import any_true
from .._dispatch.shapes import wrap_dim
from .._types.dtypes import bool_, float32, get_default_dtype, iinfo, int64
from .._types.unsupported import unsupported_function

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DType, Ints


__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


_UNSUPPORTED = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")


def __getattr__(name: str) -> Any:
    if name in _UNSUPPORTED:
        return unsupported_function(f"torch.masked.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _dtype_limits(dtype):
    """The least and the greatest value of a dtype."""
    if dtype.category == 0:
        return False, True
    if dtype.category == 1:
        return iinfo(dtype).min, iinfo(dtype).max
    return -math.inf, math.inf


def _normalize_dims(input, dim):
    """Return nonnegative dimensions; None means all. RuntimeError for a repeated one."""
    if dim is None:
        return tuple(range(input.ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    dims = []
    for d in given:
        wrapped = wrap_dim(d, input.ndim)
        if wrapped in dims:
            raise RuntimeError(f"dim={wrapped} appears multiple times in the list of dims")
        dims.append(wrapped)
    return tuple(dims) if input.ndim else ()


def _fill_masked(input, mask, value):
    """Return `input` with masked-out elements set to `value`."""
    if mask is None:
        return input
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    mask = mask.to(dtype=bool_).expand(input.shape)
    return F.where(mask, input, F._full_like(input, value))


def _cast_input(input, dtype, integers_to=None):
    if dtype is None and integers_to is not None and input.dtype.category < 2:
        dtype = integers_to
    return input if dtype is None or dtype is input.dtype else input.to(dtype)


def _clone_if_same(result, input):
    """Return the result, cloned if it is the input."""
    return F.clone(result) if result is input else result


def _count_unmasked(input, dims, keepdim, mask):
    """Return the number of elements that count."""
    ones = F._ones_like(input.detach().to(int64)) if mask is None else mask.to(dtype=int64).expand(input.shape)
    return F.sum(ones, dims, keepdim) if dims else ones


def sum(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` of the elements that count."""
    x = _cast_input(input, dtype, int64)
    dims = _normalize_dims(x, dim)
    x = _fill_masked(x, mask, 0)
    return F.sum(x, dims, bool(keepdim)) if dims else _clone_if_same(x, input)


def prod(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product over `dim` of the elements that count."""
    x = _fill_masked(_cast_input(input, dtype, int64), mask, 1)
    for d in sorted(_normalize_dims(x, dim), reverse=True):
        x = F.prod(x, d, bool(keepdim))
    return _clone_if_same(x, input)


def _masked_amax_or_amin(name, input, dim, keepdim, dtype, mask):
    x = _cast_input(input, dtype)
    dims = _normalize_dims(x, dim)
    x = _fill_masked(x, mask, _dtype_limits(x.dtype)[name == "amin"])
    return getattr(F, name)(x, dims, bool(keepdim)) if dims else _clone_if_same(x, input)


def amax(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest over `dim` of the elements that count."""
    return _masked_amax_or_amin("amax", input, dim, keepdim, dtype, mask)


def amin(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least over `dim` of the elements that count."""
    return _masked_amax_or_amin("amin", input, dim, keepdim, dtype, mask)


def _masked_argmax_or_argmin(name, input, dim, keepdim, dtype, mask):
    found = getattr(F, name)(
        _fill_masked(input, mask, _dtype_limits(input.dtype)[name == "argmin"]), dim, bool(keepdim)
    )
    return found.to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the largest unmasked element, cast to `dtype`, by default that of `input`."""
    return _masked_argmax_or_argmin("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the smallest unmasked element, cast to `dtype`, by default that of `input`."""
    return _masked_argmax_or_argmin("argmin", input, dim, keepdim, dtype, mask)


def mean(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` of the elements that count. ValueError for integers without `dtype`."""
    x = _cast_input(input, dtype)
    if x.dtype.category < 2:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {x.dtype}"
        )
    dims = _normalize_dims(x, dim)
    return sum(x, dims, keepdim=keepdim, mask=mask) / _count_unmasked(x, dims, bool(keepdim), mask)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The median along `dim` of the unmasked elements, the lower of two; NaN if all are masked."""
    x = _cast_input(input, dtype)
    if x.dtype.category != 2:
        raise ValueError(f"input must be a floating point tensor but got {x.dtype}")
    dim = _normalize_dims(x, dim)[0] if x.ndim else dim
    if mask is None:
        return F.median(x, dim, keepdim)[0]
    if any_true(F.isnan(x)):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return F.nanmedian(_fill_masked(x, mask, math.nan), dim, keepdim)[0]


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` over `dim` of the elements that count."""
    ord = 2.0 if ord is None else float(ord)
    x = _cast_input(input, dtype)
    dims = _normalize_dims(x, dim)
    return F.linalg_vector_norm(_fill_masked(x, mask, 0 if ord >= 0 else math.inf), ord, dims, bool(keepdim))


def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` of the elements that count, dividing by their number less `correction` (1)."""
    if unbiased is not None:
        if correction is not None:
            raise AssertionError("Only one of unbiased and correction may be given")
        correction = int(unbiased)
    correction = 1 if correction is None else correction
    x = _cast_input(input, dtype, get_default_dtype())
    dims = _normalize_dims(x, dim)
    centre = sum(x, dims, keepdim=True, mask=mask) / _count_unmasked(x, dims, True, mask)
    gap = _fill_masked(x - centre, mask, 0)
    square = F.real(gap * F.conj(gap)) if gap.dtype.is_complex else gap * gap
    free = _count_unmasked(x, dims, bool(keepdim), mask).to(square.dtype) - correction
    total = F.sum(square, dims, bool(keepdim)) if dims else square
    return _cast_input(
        total / F.maximum(free, F._zeros_like(free)), dtype or (input.dtype if input.dtype.category > 1 else None)
    )


def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of `var`."""
    return F.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def logsumexp(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(input))) over `dim` of the elements that count."""
    x = _cast_input(input, dtype, float32)
    dims = _normalize_dims(x, dim)
    x = _fill_masked(x, mask, -math.inf)
    return _cast_input(F.logsumexp(x, dims or (-1,), bool(keepdim)) if dims or not x.ndim else x, dtype or input.dtype)


def logaddexp(
    input: Tensor, other: Any, *, dtype: DType | None = None, input_mask: Any = None, other_mask: Any = None
) -> Tensor:
    """log(exp(input) + exp(other)), an element that is masked out counting as nothing."""
    a, b = _cast_input(input, dtype), _cast_input(other, dtype)
    return F.logaddexp(_fill_masked(a, input_mask, -math.inf), _fill_masked(b, other_mask, -math.inf))


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along `dim` of the elements that count."""
    return F.cumsum(_fill_masked(_cast_input(input, dtype), mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product along `dim` of the elements that count."""
    return F.cumprod(_fill_masked(_cast_input(input, dtype), mask, 1), dim, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax along `dim` over the elements that count; zero elsewhere."""
    return F.softmax(_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, -math.inf), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return F.log_softmax(_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, -math.inf), dim)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negative input along `dim` over the elements that count; zero elsewhere."""
    return F.softmax(-_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, math.inf), dim)


def normalize(
    input: Tensor, ord: Any, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The elements that count divided by their norm along `dim` (at least `eps`); zero elsewhere."""
    x = _cast_input(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _fill_masked(x, mask, 0) / F.maximum(size, F._full_like(size, eps))


__dir__ = make_module_dir(globals())
