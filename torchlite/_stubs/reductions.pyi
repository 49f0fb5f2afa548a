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
        """Whether all elements are true (not zero), of all or over `dim`: bool (uint8 for uint8)."""
    def amax(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor:
        """The greatest element, of all or over `dim` (an int or several);
        its gradient is shared by equal ones. NaN wins.
        """
    def amin(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor:
        """The least element, of all or over `dim` (an int or several);
        its gradient is shared by equal ones. NaN wins.
        """
    def aminmax(self, *, dim: _b.int | None = None, keepdim: _b.bool = False) -> results.aminmax:
        """The least and the greatest element, of all or along `dim`: `(min, max)`."""
    def any(self, dim: Ints | None = None, keepdim: _b.bool = False) -> Tensor:
        """Whether any elements are true (not zero), of all or over `dim`: bool (uint8 for uint8)."""
    def argmax(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor:
        """The index (int64) of the greatest element: of the flattened
        tensor, or along `dim`; the first of equal ones. RuntimeError for complex numbers and bools.
        """
    def argmin(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor:
        """The index (int64) of the least element: of the flattened
        tensor, or along `dim`; the first of equal ones. RuntimeError for complex numbers and bools.
        """
    def argsort(self, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False) -> Tensor:
        """Returns the indices (int64) that sort the input along a dimension."""
    def argwhere(self) -> Tensor:
        """Returns the indices of the elements that are not zero."""
    def bincount(self, weights: Tensor | None = None, minlength: _b.int = 0) -> Tensor:
        """How often each of 0, 1, 2 ... comes in a vector of non-negative integers (or the sum of their weights): a
        vector of at least `minlength`.

        >>> torch.bincount(torch.tensor([0, 2, 2]))
        tensor([1, 0, 2])
        """
    def count_nonzero(self, dim: Ints | None = None) -> Tensor:
        """How many elements are not zero, of all or over `dim` (an int or several): int64.

        >>> torch.count_nonzero(torch.tensor([0, 5, 6]))
        tensor(2)
        """
    def cummax(self, dim: _b.int) -> results.cummax:
        """The greatest element so far along `dim` and its (latest) index: `(values, indices)`, both of `input`'s
        shape. NaN counts as beyond everything.
        """
    def cummin(self, dim: _b.int) -> results.cummin:
        """The least element so far along `dim` and its (latest) index: `(values, indices)`, both of `input`'s
        shape. NaN counts as beyond everything.
        """
    def cumprod(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
        """The running product along `dim`: shape of `input`; integers and bools are multiplied as int64, or as `dtype`.

        >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
        tensor([1, 2, 6])
        """
    def cumsum(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
        """The running sum along `dim`: shape of `input`; integers and bools are summed as int64, or as `dtype`.
         IndexError for a dimension out of
        range.

         >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
         tensor([1, 3, 6])

        """
    def diff(
        self, n: _b.int = 1, dim: _b.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """The `n`-th difference of neighbours along `dim` (of bools: whether they differ), with values put before and
        after first.

        >>> torch.diff(torch.tensor([1, 4, 9]))
        tensor([3, 5])
        """
    def hash_tensor(self, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0) -> Tensor:
        """The exclusive or (uint64) of the elements' bits, of all or over `dim` (an int or several): of floats as
        float64, of others as int64. `mode` 0 is the only one.

        >>> torch.hash_tensor(torch.tensor([1, 2, 5]))
        tensor(6, dtype=torch.uint64)
        """
    def histc(self, bins: _b.int = 100, min: Number = 0, max: Number = 0) -> Tensor:
        """How many elements fall into each of `bins` equal bins between `min` and `max` (the data's own when both are
        equal), in `input`'s dtype.

        >>> torch.histc(torch.tensor([1., 2., 2.]), bins=2)
        tensor([1., 2.])
        """
    def histogram(
        self,
        bins: Tensor | _b.int,
        *,
        range: Sequence[_b.float] | None = None,
        weight: Tensor | None = None,
        density: _b.bool = False,
    ) -> results.histogram:
        """Number of elements (or how much weight) fall into each bin: `(hist, bin_edges)`. `bins` is a count or a
        tensor of edges; the last bin is closed.

        >>> torch.histogram(torch.tensor([1., 2., 3.]), 2).hist
        tensor([1., 2.])
        """
    def kthvalue(self, k: _b.int, dim: _b.int = -1, keepdim: _b.bool = False) -> results.kthvalue:
        """Returns the `k`-th smallest element along a dimension and its index."""
    def log_softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor:
        """The logarithm of ``softmax(input, dim)``, computed without underflow."""
    def logcumsumexp(self, dim: _b.int) -> Tensor:
        """The logarithm of the running sum of exponentials along `dim`, computed without overflow: shape of `input`;
         integers become the default
        float dtype.

         >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)
         tensor([0.0000, 0.6931])

        """
    def logsumexp(self, dim: Ints, keepdim: _b.bool = False) -> Tensor:
        """log(sum(exp(input))) over `dim` (an int or several), computed without overflow; integers become the default
        float dtype.

        >>> torch.logsumexp(torch.tensor([0., 0.]), 0)
        tensor(0.6931)
        """
    @overload
    def max(self) -> Tensor:
        """`max(input)`: the greatest element. `max(input, dim)`: the greatest along `dim` and its index, `(values,
        indices)`. `max(input, other)`: elementwise.

        NaN counts as the greatest. RuntimeError for an empty tensor.

        >>> torch.max(torch.tensor([1, 3, 2]))
        tensor(3)
        """
    @overload
    def max(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.max: ...
    @overload
    def max(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean of all elements, or over `dim` (an int or several). RuntimeError for integers unless `dtype` is a
        float one.

        >>> torch.mean(torch.tensor([1., 2.]))
        tensor(1.5000)
        """
    @overload
    def median(self) -> Tensor:
        """The median (the lower of two) of all elements, or along `dim` with its index, `(values, indices)`. NaN when
        there is one.

        >>> torch.median(torch.tensor([3, 1, 2]))
        tensor(2)
        """
    @overload
    def median(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.median: ...
    @overload
    def min(self) -> Tensor:
        """`min(input)`: the least element. `min(input, dim)`: the least along `dim` and its index, `(values, indices)`.
        `min(input, other)`: elementwise.
        """
    @overload
    def min(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.min: ...
    @overload
    def min(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mode(self, dim: _b.int = -1, keepdim: _b.bool = False) -> results.mode:
        """The most frequent value along `dim` (the smallest of them) and an index of it: `(values, indices)`.

        >>> torch.mode(torch.tensor([1, 2, 2])).values
        tensor(2)
        """
    def msort(self) -> Tensor:
        """Sorts the input along its first dimension."""
    def nanmean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean over `dim` of the elements that are not NaN."""
    @overload
    def nanmedian(self) -> Tensor:
        """The median of the elements that are not NaN; otherwise as `median`."""
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
        """Like `quantile`, ignoring NaNs."""
    def nansum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum over `dim` with NaN counted as zero."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Returns the indices of the elements that are not zero."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: Ints, fill_value: Number | Tensor = -1) -> Tensor:
        """Returns the indices of the first `size` elements that are not zero, in a result of fixed size."""
    def prod(self, dim: _b.int | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """The product of all elements, or along `dim`; integers and bools are multiplied as int64, or as `dtype`.

        >>> torch.prod(torch.tensor([2, 3]))
        tensor(6)
        """
    def quantile(
        self,
        q: _b.float | Tensor,
        dim: _b.int | None = None,
        keepdim: _b.bool = False,
        *,
        interpolation: _b.str = "linear",
    ) -> Tensor:
        """The `q`-quantiles (a number, or a tensor of them, which makes a new first dimension) of all elements or along
        `dim`. NaN where there is one.

        >>> torch.quantile(torch.tensor([1., 2., 3.]), 0.25)
        tensor(1.5000)
        """
    def softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor:
        """``exp(input)`` divided by its sum along ``dim``; shape and dtype of ``input``, or ``dtype`` (the input is
        cast to it first).

        >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
        tensor([0.5000, 0.5000])
        """
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
        """The standard deviation over `dim`: the square root of `var`."""
    def sum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum of all elements, or over `dim` (an int or several); integers and bools are summed as int64, or as
        `dtype`.

        >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), 0)
        tensor([4, 6])
        """
    def sum_to_size(self, *size: Ints) -> Tensor:
        """`input` summed over the dimensions that broadcasting from `size` adds or expands."""
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
        """The variance over `dim` (an int, several, or all), dividing by the count less `correction` (1). Real dtype of
        `input`, which must be a float or complex.

        >>> torch.var(torch.tensor([1., 2., 3.]))
        tensor(1.)
        """
    def cumprod_(self, dim: _b.int, *, dtype: DType | None = None) -> Self:
        """In-place version of `cumprod`: writes the result into the tensor and returns it."""
    def cumsum_(self, dim: _b.int, *, dtype: DType | None = None) -> Self:
        """In-place version of `cumsum`: writes the result into the tensor and returns it."""

def _masked_softmax(
    input: Tensor, mask: Tensor, dim: _b.int | None = None, mask_type: Any = None, *, out: Tensor | None = None
) -> Tensor:
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
    out: Tensor | None = None,
) -> Tensor:
    """Reduces consecutive segments of a dimension."""

def _unique(
    input: Tensor, sorted: _b.bool = True, return_inverse: _b.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The distinct elements, and the inverse indices (empty if not requested).

    >>> torch._unique(torch.tensor([3, 1, 3]), return_inverse=True)
    (tensor([1, 3]), tensor([1, 0, 1]))
    """

def _unique2(
    input: Tensor,
    sorted: _b.bool = True,
    return_inverse: _b.bool = False,
    return_counts: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The distinct elements, the inverse indices and the counts; the last two are empty if not requested."""

def all(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether all elements are true (not zero), of all or over `dim`: bool (uint8 for uint8)."""

def amax(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The greatest element, of all or over `dim` (an int or several);
    its gradient is shared by equal ones. NaN wins.
    """

def amin(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The least element, of all or over `dim` (an int or several);
    its gradient is shared by equal ones. NaN wins.
    """

def aminmax(
    input: Tensor, *, dim: _b.int | None = None, keepdim: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.aminmax:
    """The least and the greatest element, of all or along `dim`: `(min, max)`."""

def any(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether any elements are true (not zero), of all or over `dim`: bool (uint8 for uint8)."""

def argmax(input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index (int64) of the greatest element: of the flattened
    tensor, or along `dim`; the first of equal ones. RuntimeError for complex numbers and bools.
    """

def argmin(input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index (int64) of the least element: of the flattened
    tensor, or along `dim`; the first of equal ones. RuntimeError for complex numbers and bools.
    """

def argsort(
    input: Tensor, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """Returns the indices (int64) that sort the input along a dimension."""

def argwhere(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the indices of the elements that are not zero."""

def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: _b.int = 0, *, out: Tensor | None = None
) -> Tensor:
    """How often each of 0, 1, 2 ... comes in a vector of non-negative integers (or the sum of their weights): a
    vector of at least `minlength`.

    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """

def bucketize(
    input: Tensor | Number,
    boundaries: Tensor,
    *,
    out_int32: _b.bool = False,
    right: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the index of the bucket that each value falls into."""

def count_nonzero(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """How many elements are not zero, of all or over `dim` (an int or several): int64.

    >>> torch.count_nonzero(torch.tensor([0, 5, 6]))
    tensor(2)
    """

def cummax(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummax:
    """The greatest element so far along `dim` and its (latest) index: `(values, indices)`, both of `input`'s
    shape. NaN counts as beyond everything.
    """

def cummin(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummin:
    """The least element so far along `dim` and its (latest) index: `(values, indices)`, both of `input`'s
    shape. NaN counts as beyond everything.
    """

def cumprod(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """The running product along `dim`: shape of `input`; integers and bools are multiplied as int64, or as `dtype`.

    >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """

def cumsum(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor:
    """The running sum along `dim`: shape of `input`; integers and bools are summed as int64, or as `dtype`.
     IndexError for a dimension out of
    range.

     >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
     tensor([1, 3, 6])

    """

def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor:
    """The running integral of `y` along `dim` by the trapezoidal rule: one element fewer than `y`."""

def diff(
    input: Tensor,
    n: _b.int = 1,
    dim: _b.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The `n`-th difference of neighbours along `dim` (of bools: whether they differ), with values put before and after
    first.

    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """

def gradient(
    input: Tensor,
    *,
    spacing: Number | Sequence[Number] | Tensor | Sequence[Tensor] | None = None,
    dim: _b.int | None = None,
    edge_order: _b.int = 1,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Numerical derivatives along each of `dim` (all by default) by second-order differences: a tuple of tensors like
    `input`.

    `spacing` is a number, one a dimension, or the samples' coordinates, a vector a dimension.
    """

def hash_tensor(
    input: Tensor, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0, out: Tensor | None = None
) -> Tensor:
    """The exclusive or (uint64) of the elements' bits, of all or over `dim` (an int or several): of floats as float64,
    of others as int64. `mode` 0 is the only one.

    >>> torch.hash_tensor(torch.tensor([1, 2, 5]))
    tensor(6, dtype=torch.uint64)
    """

def histc(input: Tensor, bins: _b.int = 100, min: Number = 0, max: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements fall into each of `bins` equal bins between `min` and `max` (the data's own when both are
    equal), in `input`'s dtype.

    >>> torch.histc(torch.tensor([1., 2., 2.]), bins=2)
    tensor([1., 2.])
    """

def histogram(
    input: Tensor,
    bins: Tensor | _b.int,
    *,
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
    out: Sequence[Tensor] | None = None,
) -> results.histogram:
    """Number of elements (or how much weight) fall into each bin: `(hist, bin_edges)`. `bins` is a count or a tensor of
    edges; the last bin is closed.

    >>> torch.histogram(torch.tensor([1., 2., 3.]), 2).hist
    tensor([1., 2.])
    """

def histogramdd(
    input: Tensor,
    bins: Tensor | Ints | Sequence[Tensor],
    *,
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
    out: Sequence[Tensor] | None = None,
) -> results.histogramdd:
    """A histogram in several dimensions of points along the last dimension of `input`: `(hist, bin_edges)` with one
    vector of edges a dimension.
    """

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
    """The logarithm of ``softmax(input, dim)``, computed without underflow."""

def logcumsumexp(input: Tensor, dim: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials along `dim`, computed without overflow: shape of `input`;
     integers become the default
    float dtype.

     >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)
     tensor([0.0000, 0.6931])

    """

def logsumexp(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(input))) over `dim` (an int or several), computed without overflow; integers become the default
    float dtype.

    >>> torch.logsumexp(torch.tensor([0., 0.]), 0)
    tensor(0.6931)
    """

@overload
def max(input: Tensor) -> Tensor:
    """`max(input)`: the greatest element. `max(input, dim)`: the greatest along `dim` and its index, `(values,
    indices)`. `max(input, other)`: elementwise.

    NaN counts as the greatest. RuntimeError for an empty tensor.

    >>> torch.max(torch.tensor([1, 3, 2]))
    tensor(3)
    """

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
    """The mean of all elements, or over `dim` (an int or several). RuntimeError for integers unless `dtype` is a
    float one.

    >>> torch.mean(torch.tensor([1., 2.]))
    tensor(1.5000)
    """

@overload
def median(input: Tensor) -> Tensor:
    """The median (the lower of two) of all elements, or along `dim` with its index, `(values, indices)`. NaN when there
    is one.

    >>> torch.median(torch.tensor([3, 1, 2]))
    tensor(2)
    """

@overload
def median(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.median: ...
@overload
def min(input: Tensor) -> Tensor:
    """`min(input)`: the least element. `min(input, dim)`: the least along `dim` and its index, `(values, indices)`.
    `min(input, other)`: elementwise.
    """

@overload
def min(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.min: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mode(
    input: Tensor, dim: _b.int = -1, keepdim: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> results.mode:
    """The most frequent value along `dim` (the smallest of them) and an index of it: `(values, indices)`.

    >>> torch.mode(torch.tensor([1, 2, 2])).values
    tensor(2)
    """

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
    """The mean over `dim` of the elements that are not NaN."""

@overload
def nanmedian(input: Tensor) -> Tensor:
    """The median of the elements that are not NaN; otherwise as `median`."""

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
    """Like `quantile`, ignoring NaNs."""

def nansum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` with NaN counted as zero."""

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
    """The product of all elements, or along `dim`; integers and bools are multiplied as int64, or as `dtype`.

    >>> torch.prod(torch.tensor([2, 3]))
    tensor(6)
    """

def quantile(
    input: Tensor,
    q: _b.float | Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    interpolation: _b.str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The `q`-quantiles (a number, or a tensor of them, which makes a new first dimension) of all elements or along
    `dim`. NaN where there is one.

    >>> torch.quantile(torch.tensor([1., 2., 3.]), 0.25)
    tensor(1.5000)
    """

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
    out: Tensor | None = None,
) -> Tensor:
    """Reduces consecutive segments of a dimension."""

def softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``; shape and dtype of ``input``, or ``dtype`` (the input is cast to
    it first).

    >>> torch.softmax(torch.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """

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
    """The standard deviation over `dim`: the square root of `var`."""

def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """`(std, mean)` over `dim`."""

def sum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of all elements, or over `dim` (an int or several); integers and bools are summed as int64, or as
    `dtype`.

    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), 0)
    tensor([4, 6])
    """

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

def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, for samples at `x` or `dx` apart.

    >>> torch.trapezoid(torch.tensor([1., 2., 3.]))
    tensor(4.)
    """

def trapz(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, for samples at `x` or `dx` apart.

    >>> torch.trapezoid(torch.tensor([1., 2., 3.]))
    tensor(4.)
    """

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
    """The variance over `dim` (an int, several, or all), dividing by the count less `correction` (1). Real dtype of
    `input`, which must be a float or complex.

    >>> torch.var(torch.tensor([1., 2., 3.]))
    tensor(1.)
    """

def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """`(var, mean)` over `dim`."""

def cumprod_(input: Tensor, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
    """In-place version of `cumprod`: writes the result into the tensor and returns it."""

def cumsum_(input: Tensor, dim: _b.int, *, dtype: DType | None = None) -> Tensor:
    """In-place version of `cumsum`: writes the result into the tensor and returns it."""
