# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: reductions."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

class ReductionsMethods:
    def all(self, dim: Ints | None = None, keepdim: _b.bool = False) -> Tensor:
        """Tests whether all elements are true, that is not zero."""
    def amax(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor:
        """Computes the greatest element."""
    def amin(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor:
        """Computes the least element."""
    def aminmax(self, *, dim: _b.int | None = None, keepdim: _b.bool = False) -> results.aminmax:
        """Computes the least and the greatest element."""
    def any(self, dim: Ints | None = None, keepdim: _b.bool = False) -> Tensor:
        """Tests whether any elements are true, that is not zero."""
    def argmax(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor:
        """Returns the index (int64) of the greatest element."""
    def argmin(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor:
        """Returns the index (int64) of the least element."""
    def argsort(self, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False) -> Tensor:
        """Returns the indices (int64) that sort the input along a dimension."""
    def argwhere(self) -> Tensor:
        """Returns the indices of the elements that are not zero."""
    def bincount(self, weights: Tensor | None = None, minlength: _b.int = 0) -> Tensor:
        """Counts how often each integer from 0 on occurs."""
    def count_nonzero(self, dim: Ints | None = None) -> Tensor:
        """Counts the elements that are not zero."""
    def cummax(self, dim: _b.int) -> results.cummax:
        """Computes the greatest element so far along a dimension, and its index."""
    def cummin(self, dim: _b.int) -> results.cummin:
        """Computes the least element so far along a dimension, and its index."""
    def cumprod(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
        """Computes the running product along a dimension.

        Args:
            dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

        Example:
            >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
            tensor([1, 2, 6])
        """
    def cumsum(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
        """Computes the running sum along a dimension."""
    def diff(
        self, n: _b.int = 1, dim: _b.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """Computes differences of neighboring elements; of bools, whether they differ."""
    def hash_tensor(self, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0) -> Tensor:
        """Computes the exclusive or of the elements' bits."""
    def histc(self, bins: _b.int = 100, min: Number = 0, max: Number = 0) -> Tensor:
        """Counts the elements in bins of equal width."""
    def histogram(
        self,
        bins: Tensor | _b.int = 100,
        *,
        range: Sequence[_b.float] | None = None,
        weight: Tensor | None = None,
        density: _b.bool = False,
    ) -> results.histogram:
        """Counts the elements in bins."""
    def kthvalue(self, k: _b.int, dim: _b.int = -1, keepdim: _b.bool = False) -> results.kthvalue:
        """Returns the `k`-th smallest element along a dimension and its index."""
    def log_softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor:
        r"""Computes the logarithm of the softmax along a dimension, without overflow."""
    def logcumsumexp(self, dim: _b.int) -> Tensor:
        """Computes the logarithm of the running sum of exponentials along a dimension, without overflow."""
    def logsumexp(self, dim: Ints, keepdim: _b.bool = False) -> Tensor:
        """Computes the logarithm of the sum of exponentials, without overflow."""
    @overload
    def max(self) -> Tensor:
        """Computes the greatest element, or the maximum of two tensors."""
    @overload
    def max(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.max: ...
    @overload
    def max(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """Computes the mean of the elements."""
    @overload
    def median(self) -> Tensor:
        """Computes the median: the lower one of two middle elements."""
    @overload
    def median(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.median: ...
    @overload
    def min(self) -> Tensor:
        """Computes the least element, or the minimum of two tensors."""
    @overload
    def min(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.min: ...
    @overload
    def min(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mode(self, dim: _b.int = -1, keepdim: _b.bool = False) -> results.mode:
        """Computes the most frequent value along a dimension, and an index of it."""
    def msort(self) -> Tensor:
        """Sorts the input along its first dimension."""
    def nanmean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """Computes the mean of the elements that are not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        """Computes the median of the elements that are not NaN: the lower one of two middle elements."""
    @overload
    def nanmedian(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.nanmedian: ...
    def nanquantile(
        self,
        q: _b.float | Tensor,
        dim: _b.int | None = None,
        keepdim: _b.bool = False,
        *,
        interpolation: _b.str = "linear",
    ) -> Tensor:
        """Computes quantiles of the elements that are not NaN."""
    def nansum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """Computes the sum of the elements that are not NaN."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Returns the indices of the elements that are not zero."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: Ints, fill_value: Number | Tensor = -1) -> Tensor:
        """Returns the indices of the first `size` elements that are not zero, in a result of fixed size."""
    def prod(self, dim: _b.int | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """Computes the product of the elements."""
    def quantile(
        self,
        q: _b.float | Tensor,
        dim: _b.int | None = None,
        keepdim: _b.bool = False,
        *,
        interpolation: _b.str = "linear",
    ) -> Tensor:
        """Computes quantiles."""
    def softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor:
        r"""Scales the elements along a dimension to positive values with sum 1."""
    def sort(self, dim: _b.int = -1, descending: _b.bool = False, stable: _b.bool = False) -> results.sort:
        """Sorts the elements along a dimension and returns their original indices too."""
    def std(
        self,
        dim: Ints | None = None,
        unbiased: _b.bool | None = None,
        keepdim: _b.bool = False,
        *,
        correction: _b.float | None = None,
    ) -> Tensor:
        """Computes the standard deviation: the square root of the variance."""
    def sum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """Computes the sum of the elements."""
    def sum_to_size(self, *size: Ints) -> Tensor:
        """Sums over the dimensions that broadcasting from `size` adds or expands."""
    def topk(self, k: _b.int, dim: _b.int = -1, largest: _b.bool = True, sorted: _b.bool = True) -> results.topk:
        """Returns the `k` largest or smallest elements along a dimension and their indices."""
    @overload
    def unique(
        self,
        sorted: _b.bool = True,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: _b.int | None = None,
    ) -> Tensor:
        """Returns the distinct elements in ascending order."""
    @overload
    def unique(
        self,
        sorted: _b.bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[False] = False,
        dim: _b.int | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self,
        sorted: _b.bool = True,
        *,
        return_inverse: Literal[False] = False,
        return_counts: Literal[True],
        dim: _b.int | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique(
        self,
        sorted: _b.bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[True],
        dim: _b.int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: _b.int | None = None
    ) -> Tensor:
        """Removes the elements that equal their predecessor."""
    @overload
    def unique_consecutive(
        self, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _b.int | None = None
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _b.int | None = None
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def unique_consecutive(
        self, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _b.int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def var(
        self,
        dim: Ints | None = None,
        unbiased: _b.bool | None = None,
        keepdim: _b.bool = False,
        *,
        correction: _b.float | None = None,
    ) -> Tensor:
        r"""Computes the variance."""
    def cumprod_(self, dim: _b.int, *, dtype: DType | None = None) -> Self:
        """In-place version of `cumprod`: writes the result into the tensor and returns it."""
    def cumsum_(self, dim: _b.int, *, dtype: DType | None = None) -> Self:
        """In-place version of `cumsum`: writes the result into the tensor and returns it."""

def _masked_softmax(input: Tensor, mask: Tensor, dim: _b.int | None = None, mask_type: Any = None) -> Tensor:
    """``softmax`` of what ``mask`` does not leave out (where it is True); NaN where all is left out.

    >>> torch._masked_softmax(torch.tensor([1., 1., 1.]), torch.tensor([False, True, False]))
    tensor([0.5000, 0.0000, 0.5000])
    """

def _segment_reduce(
    data: Tensor,
    reduce: _b.str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: _b.int = 0,
    unsafe: _b.bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Reduces consecutive segments of a dimension."""

def _unique(input: Tensor, sorted: _b.bool = True, return_inverse: _b.bool = False) -> Tensor:
    """The distinct elements, and the inverse indices (empty if not requested).

    >>> torch._unique(torch.tensor([3, 1, 3]), return_inverse=True)
    (tensor([1, 3]), tensor([1, 0, 1]))
    """

def _unique2(
    input: Tensor, sorted: _b.bool = True, return_inverse: _b.bool = False, return_counts: _b.bool = False
) -> Tensor:
    """The distinct elements, the inverse indices and the counts; the last two are empty if not requested."""

def all(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Tests whether all elements are true, that is not zero."""

def amax(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the greatest element."""

def amin(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the least element."""

def aminmax(
    input: Tensor, *, dim: _b.int | None = None, keepdim: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.aminmax:
    """Computes the least and the greatest element."""

def any(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Tests whether any elements are true, that is not zero."""

def argmax(input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Returns the index (int64) of the greatest element."""

def argmin(input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Returns the index (int64) of the least element."""

def argsort(
    input: Tensor, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """Returns the indices (int64) that sort the input along a dimension."""

def argwhere(input: Tensor) -> Tensor:
    """Returns the indices of the elements that are not zero."""

def bincount(input: Tensor, weights: Tensor | None = None, minlength: _b.int = 0) -> Tensor:
    """Counts how often each integer from 0 on occurs."""

def bucketize(
    input: Tensor | Number,
    boundaries: Tensor,
    *,
    out_int32: _b.bool = False,
    right: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the index of the bucket that each value falls into."""

def count_nonzero(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Counts the elements that are not zero."""

def cummax(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummax:
    """Computes the greatest element so far along a dimension, and its index."""

def cummin(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummin:
    """Computes the least element so far along a dimension, and its index."""

def cumprod(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """Computes the running product along a dimension.

    Args:
        dtype: The dtype of the result. Default: int64 for bools and integers, else the input's.

    Example:
        >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
        tensor([1, 2, 6])
    """

def cumsum(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """Computes the running sum along a dimension."""

def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1) -> Tensor:
    """Computes the running integral by the trapezoidal rule."""

def diff(
    input: Tensor,
    n: _b.int = 1,
    dim: _b.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes differences of neighboring elements; of bools, whether they differ."""

def gradient(
    input: Tensor,
    *,
    spacing: Number | Sequence[Number] | Tensor | Sequence[Tensor] | None = None,
    dim: _b.int | None = None,
    edge_order: _b.int = 1,
) -> tuple[Tensor, ...]:
    """Estimates the derivatives of samples by second-order differences."""

def hash_tensor(
    input: Tensor, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0, out: Tensor | None = None
) -> Tensor:
    """Computes the exclusive or of the elements' bits."""

def histc(input: Tensor, bins: _b.int = 100, min: Number = 0, max: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """Counts the elements in bins of equal width."""

def histogram(
    input: Tensor,
    bins: Tensor | _b.int = 100,
    *,
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
    out: Sequence[Tensor] | None = None,
) -> results.histogram:
    """Counts the elements in bins."""

def histogramdd(
    input: Tensor,
    bins: Tensor | Ints | Sequence[Tensor],
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
) -> results.histogramdd:
    """Counts points in bins of several dimensions."""

def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: _b.bool = False,
    invert: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Tests for each element whether it occurs in another tensor."""

def kthvalue(
    input: Tensor, k: _b.int, dim: _b.int = -1, keepdim: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> results.kthvalue:
    """Returns the `k`-th smallest element along a dimension and its index."""

def log_softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the logarithm of the softmax along a dimension, without overflow."""

def logcumsumexp(input: Tensor, dim: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Computes the logarithm of the running sum of exponentials along a dimension, without overflow."""

def logsumexp(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the logarithm of the sum of exponentials, without overflow."""

@overload
def max(input: Tensor) -> Tensor:
    """Computes the greatest element, or the maximum of two tensors."""

@overload
def max(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.max: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the mean of the elements."""

@overload
def median(input: Tensor) -> Tensor:
    """Computes the median: the lower one of two middle elements."""

@overload
def median(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.median: ...
@overload
def min(input: Tensor) -> Tensor:
    """Computes the least element, or the minimum of two tensors."""

@overload
def min(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.min: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mode(
    input: Tensor, dim: _b.int = -1, keepdim: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> results.mode:
    """Computes the most frequent value along a dimension, and an index of it."""

def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sorts the input along its first dimension."""

def nanmean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the mean of the elements that are not NaN."""

@overload
def nanmedian(input: Tensor) -> Tensor:
    """Computes the median of the elements that are not NaN: the lower one of two middle elements."""

@overload
def nanmedian(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.nanmedian: ...
def nanquantile(
    input: Tensor,
    q: _b.float | Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    interpolation: _b.str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Computes quantiles of the elements that are not NaN."""

def nansum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the sum of the elements that are not NaN."""

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor:
    """Returns the indices of the elements that are not zero."""

@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero_static(input: Tensor, *, size: Ints, fill_value: Number | Tensor = -1, out: Tensor | None = None) -> Tensor:
    """Returns the indices of the first `size` elements that are not zero, in a result of fixed size."""

def prod(
    input: Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the product of the elements."""

def quantile(
    input: Tensor,
    q: _b.float | Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    interpolation: _b.str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Computes quantiles."""

def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: _b.bool = False,
    right: _b.bool = False,
    side: _b.str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Finds the indices at which values are inserted into a sorted sequence to keep its order."""

def segment_reduce(
    data: Tensor,
    reduce: _b.str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: _b.int = 0,
    unsafe: _b.bool = False,
    initial: Number | None = None,
) -> Tensor:
    """Reduces consecutive segments of a dimension."""

def softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Scales the elements along a dimension to positive values with sum 1."""

def sort(
    input: Tensor,
    dim: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.sort:
    """Sorts the elements along a dimension and returns their original indices too."""

def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the standard deviation: the square root of the variance."""

def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes the standard deviation and the mean."""

def sum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the sum of the elements."""

def topk(
    input: Tensor,
    k: _b.int,
    dim: _b.int = -1,
    largest: _b.bool = True,
    sorted: _b.bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.topk:
    """Returns the `k` largest or smallest elements along a dimension and their indices."""

def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1) -> Tensor:
    """Computes an integral by the trapezoidal rule."""

def trapz(y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1) -> Tensor:
    """Computes an integral by the trapezoidal rule."""

@overload
def unique(
    input: Tensor,
    sorted: _b.bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _b.int | None = None,
) -> Tensor:
    """Returns the distinct elements in ascending order."""

@overload
def unique(
    input: Tensor,
    sorted: _b.bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[False] = False,
    dim: _b.int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _b.bool = True,
    *,
    return_inverse: Literal[False] = False,
    return_counts: Literal[True],
    dim: _b.int | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def unique(
    input: Tensor,
    sorted: _b.bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: Literal[True],
    dim: _b.int | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _b.int | None = None,
) -> Tensor:
    """Removes the elements that equal their predecessor."""

@overload
def unique_consecutive(
    input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[False] = False, dim: _b.int | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, *, return_inverse: Literal[False] = False, return_counts: Literal[True], dim: _b.int | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def unique_consecutive(
    input: Tensor, *, return_inverse: Literal[True], return_counts: Literal[True], dim: _b.int | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""Computes the variance."""

def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes the variance and the mean."""
