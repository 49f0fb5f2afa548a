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
from .._types.layouts import strided
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
    """Compute the sum of the unmasked elements.

    The sum of no elements is 0.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and int64 for integers and
            bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.sum(x, 1, mask=mask)
        tensor([1., 7.])
    """
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
    """Compute the product of the unmasked elements.

    The product of no elements is 1.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and int64 for integers and
            bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.prod(x, 1, mask=mask)
        tensor([ 1., 12.])
    """
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
    """Compute the maximum of the unmasked elements.

    The maximum of no elements is the least value of the dtype: minus infinity for floating-point numbers.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.amax(x, 1, mask=mask)
        tensor([1., 4.])
    """
    return _masked_amax_or_amin("amax", input, dim, keepdim, dtype, mask)


def amin(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute the minimum of the unmasked elements.

    The minimum of no elements is the greatest value of the dtype: infinity for floating-point numbers.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.amin(x, 1, mask=mask)
        tensor([1., 3.])
    """
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
    """Find the index of the largest unmasked element.

    Args:
        input: Tensor of any shape.
        dim: Dimension to reduce. Default: ``None``, the index into the flattened input.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype of the result. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.argmax(x, 1, mask=mask)
        tensor([0., 1.])
    """
    return _masked_argmax_or_argmin("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Find the index of the smallest unmasked element.

    Args:
        input: Tensor of any shape.
        dim: Dimension to reduce. Default: ``None``, the index into the flattened input.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype of the result. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.argmin(x, 1, mask=mask)
        tensor([0., 0.])
    """
    return _masked_argmax_or_argmin("argmin", input, dim, keepdim, dtype, mask)


def mean(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute the mean of the unmasked elements.

    The mean of no elements is NaN.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        ValueError: ``input`` has integers or bools, and no ``dtype`` is given.
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.mean(x, 1, mask=mask)
        tensor([1.0000, 3.5000])
    """
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
    """Compute the median of the unmasked elements along a dimension, the lower one of two.

    NaNs do not count. The median of no elements is NaN.

    Args:
        input: Tensor of any shape.
        dim: Dimension to reduce. Default: -1.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype of the result, unless ``input`` has floating-point numbers. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        ValueError: No element of a row counts, and ``input`` has no floating-point dtype. Or ``input`` is not strided.
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.median(x, 1, mask=mask)
        tensor([1., 3.])
    """
    if input.layout is not strided:
        raise ValueError(f"masked median expects strided tensor (got {input.layout} tensor)")
    floating = input.dtype.category == 2
    x = input if floating else _cast_input(input, float32)
    dim = _normalize_dims(x, dim)[0] if x.ndim else dim
    found = F.nanmedian(_fill_masked(x, mask, math.nan), dim, keepdim)[0]
    if floating:
        return found
    if any_true(F.isnan(found)):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _cast_input(found, input.dtype if dtype is None else dtype)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Compute the vector norm of the unmasked elements, :math:`\left( \sum_i |x_i|^p \right)^{1/p}`.

    Args:
        input: Tensor of any shape.
        ord: Order :math:`p`; infinity is the largest magnitude. ``None`` is 2. Default: 2.0.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.norm(x, 2.0, 1, mask=mask)
        tensor([1., 5.])
    """
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
    """Compute the variance of the unmasked elements.

    It is the sum of squared distances from the mean over the number of elements less ``correction``.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        unbiased: Whether to divide by the number of elements less 1; ``False`` is ``correction=0``. Default: ``None``,
            ``correction`` decides.
        correction: What is subtracted from the number of elements, in the divisor. Default: ``None``, 1.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and the default dtype for
            integers and bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        AssertionError: Both ``unbiased`` and ``correction`` are given.
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.var(x, mask=mask)
        tensor(2.3333)
    """
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
    """Compute the standard deviation of the unmasked elements, the square root of `var`.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        unbiased: Whether to divide by the number of elements less 1; ``False`` is ``correction=0``. Default: ``None``,
            ``correction`` decides.
        correction: What is subtracted from the number of elements, in the divisor. Default: ``None``, 1.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and the default dtype for
            integers and bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        AssertionError: Both ``unbiased`` and ``correction`` are given.
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.std(x, mask=mask)
        tensor(1.5275)
    """
    return F.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def logsumexp(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute the logarithm of the sum of the exponentials of the unmasked elements.

    The result of no elements is minus infinity.

    Args:
        input: Tensor of any shape.
        dim: Dimension or dimensions to reduce. Default: ``None``, all.
        keepdim: Whether reduced dimensions stay with size 1. Default: ``False``.
        dtype: dtype to which the input is cast first and that of the result. Default: ``None``, that of ``input``;
            integers are computed in float32.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input`` without the reduced dimensions.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.logsumexp(x, 1, mask=mask)
        tensor([1.0000, 4.3133])
    """
    x = _cast_input(input, dtype, float32)
    dims = _normalize_dims(x, dim)
    x = _fill_masked(x, mask, -math.inf)
    return _cast_input(F.logsumexp(x, dims or (-1,), bool(keepdim)) if dims or not x.ndim else x, dtype or input.dtype)


def logaddexp(
    input: Tensor, other: Any, *, dtype: DType | None = None, input_mask: Any = None, other_mask: Any = None
) -> Tensor:
    r"""Compute :math:`\log(\exp(x) + \exp(y))` elementwise; a masked element counts as minus infinity.

    Args:
        input: Tensor :math:`x`.
        other: Tensor :math:`y`, which broadcasts with ``input``.
        dtype: dtype to which both are cast first. Default: ``None``, their own.
        input_mask: Bool tensor, true where an element of ``input`` counts. Default: ``None``, all elements.
        other_mask: Bool tensor, true where an element of ``other`` counts. Default: ``None``, all elements.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        IndexError: A mask has more dimensions than its tensor.

    Example:
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0])
        >>> torch.masked.logaddexp(x, y, other_mask=torch.tensor([True, False]))
        tensor([1.6931, 2.0000])
    """
    a, b = _cast_input(input, dtype), _cast_input(other, dtype)
    return F.logaddexp(_fill_masked(a, input_mask, -math.inf), _fill_masked(b, other_mask, -math.inf))


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute the cumulative sum of the unmasked elements along a dimension; a masked element adds 0.

    Args:
        input: Tensor of any shape.
        dim: Dimension along which to compute.
        dtype: dtype of the result. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.cumsum(x, 1, mask=mask)
        tensor([[1., 1.],
                [3., 7.]])
    """
    return F.cumsum(_fill_masked(_cast_input(input, dtype), mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute the cumulative product of the unmasked elements along a dimension; a masked element is a factor of 1.

    Args:
        input: Tensor of any shape.
        dim: Dimension along which to compute.
        dtype: dtype of the result. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.cumprod(x, 1, mask=mask)
        tensor([[ 1.,  1.],
                [ 3., 12.]])
    """
    return F.cumprod(_fill_masked(_cast_input(input, dtype), mask, 1), dim, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the unmasked elements along a dimension; masked elements give 0.

    Without any unmasked element along the dimension the result is NaN.

    Args:
        input: Tensor of any shape.
        dim: Dimension along which to compute.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and the default dtype for
            integers and bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.softmax(x, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.2689, 0.7311]])
    """
    return F.softmax(_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, -math.inf), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute the logarithm of the softmax of the unmasked elements along a dimension; masked elements give minus
    infinity.

    Args:
        input: Tensor of any shape.
        dim: Dimension along which to compute.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and the default dtype for
            integers and bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.log_softmax(x, 1, mask=mask)[1]
        tensor([-1.3133, -0.3133])
    """
    return F.log_softmax(_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, -math.inf), dim)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the negated unmasked elements along a dimension; masked elements give 0.

    Args:
        input: Tensor of any shape.
        dim: Dimension along which to compute.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``, and the default dtype for
            integers and bools.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.softmin(x, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.7311, 0.2689]])
    """
    return F.softmax(-_fill_masked(_cast_input(input, dtype, get_default_dtype()), mask, math.inf), dim)


def normalize(
    input: Tensor, ord: Any, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Divide the unmasked elements by their norm along a dimension; masked elements give 0.

    Args:
        input: Tensor of any shape.
        ord: Order of the norm; see `norm`.
        dim: Dimension, or dimensions, over which the norm is computed.
        eps: Least divisor. Default: 1e-12.
        dtype: dtype to which the input is cast first. Default: ``None``, that of ``input``.
        mask: Bool tensor that broadcasts to ``input``, true where an element counts. Default: ``None``, all elements.

    Returns:
        A tensor of the shape of ``input``.

    Raises:
        IndexError: The mask has more dimensions than ``input``.
        RuntimeError: ``dim`` has a dimension twice.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mask = torch.tensor([[True, False], [True, True]])
        >>> torch.masked.normalize(x, 2.0, 1, mask=mask)
        tensor([[1.0000, 0.0000],
                [0.6000, 0.8000]])
    """
    x = _cast_input(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _fill_masked(x, mask, 0) / F.maximum(size, F._full_like(size, eps))


__dir__ = make_module_dir(globals())
