# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: reductions."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

class ReductionsMethods:
    def all(self, dim: Ints | None = None, keepdim: _b.bool = False) -> Tensor: ...
    def amax(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor: ...
    def amin(self, dim: Ints = ..., keepdim: _b.bool = False) -> Tensor: ...
    def aminmax(self, *, dim: _b.int | None = None, keepdim: _b.bool = False) -> results.aminmax: ...
    def any(self, dim: Ints | None = None, keepdim: _b.bool = False) -> Tensor: ...
    def argmax(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor: ...
    def argmin(self, dim: _b.int | None = None, keepdim: _b.bool = False) -> Tensor: ...
    def argsort(self, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False) -> Tensor: ...
    def argwhere(self) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: _b.int = 0) -> Tensor: ...
    def count_nonzero(self, dim: Ints | None = None) -> Tensor: ...
    def cummax(self, dim: _b.int) -> results.cummax: ...
    def cummin(self, dim: _b.int) -> results.cummin: ...
    def cumprod(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor: ...
    def cumsum(self, dim: _b.int, *, dtype: DType | None = None) -> Tensor: ...
    def diff(
        self, n: _b.int = 1, dim: _b.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor: ...
    def hash_tensor(self, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0) -> Tensor: ...
    def histc(self, bins: _b.int = 100, min: Number = 0, max: Number = 0) -> Tensor: ...
    def histogram(
        self,
        bins: Tensor | _b.int,
        *,
        range: Sequence[_b.float] | None = None,
        weight: Tensor | None = None,
        density: _b.bool = False,
    ) -> results.histogram: ...
    def kthvalue(self, k: _b.int, dim: _b.int = -1, keepdim: _b.bool = False) -> results.kthvalue: ...
    def log_softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor: ...
    def logcumsumexp(self, dim: _b.int) -> Tensor: ...
    def logsumexp(self, dim: Ints, keepdim: _b.bool = False) -> Tensor: ...
    @overload
    def max(self) -> Tensor: ...
    @overload
    def max(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.max: ...
    @overload
    def max(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor: ...
    @overload
    def median(self) -> Tensor: ...
    @overload
    def median(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.median: ...
    @overload
    def min(self) -> Tensor: ...
    @overload
    def min(
        self, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
    ) -> results.min: ...
    @overload
    def min(self, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    def mode(self, dim: _b.int = -1, keepdim: _b.bool = False) -> results.mode: ...
    def msort(self) -> Tensor: ...
    def nanmean(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor: ...
    @overload
    def nanmedian(self) -> Tensor: ...
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
    ) -> Tensor: ...
    def nansum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: Ints, fill_value: Number | Tensor = -1) -> Tensor: ...
    def prod(self, dim: _b.int | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor: ...
    def quantile(
        self,
        q: _b.float | Tensor,
        dim: _b.int | None = None,
        keepdim: _b.bool = False,
        *,
        interpolation: _b.str = "linear",
    ) -> Tensor: ...
    def softmax(self, dim: _b.int, dtype: DType | None = None) -> Tensor: ...
    def sort(self, dim: _b.int = -1, descending: _b.bool = False, stable: _b.bool = False) -> results.sort: ...
    def std(
        self,
        dim: Ints | None = None,
        unbiased: _b.bool | None = None,
        keepdim: _b.bool = False,
        *,
        correction: _b.float | None = None,
    ) -> Tensor: ...
    def sum(self, dim: Ints | None = None, keepdim: _b.bool = False, *, dtype: DType | None = None) -> Tensor: ...
    def sum_to_size(self, *size: Ints) -> Tensor: ...
    def topk(self, k: _b.int, dim: _b.int = -1, largest: _b.bool = True, sorted: _b.bool = True) -> results.topk: ...
    @overload
    def unique(
        self,
        sorted: _b.bool = True,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: _b.int | None = None,
    ) -> Tensor: ...
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
    ) -> Tensor: ...
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
    ) -> Tensor: ...
    def cumprod_(self, dim: _b.int, *, dtype: DType | None = None) -> Self: ...
    def cumsum_(self, dim: _b.int, *, dtype: DType | None = None) -> Self: ...

def _masked_softmax(
    input: Tensor, mask: Tensor, dim: _b.int | None = None, mask_type: Any = None, *, out: Tensor | None = None
) -> Tensor: ...
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
) -> Tensor: ...
def _unique(
    input: Tensor, sorted: _b.bool = True, return_inverse: _b.bool = False, *, out: Tensor | None = None
) -> Tensor: ...
def _unique2(
    input: Tensor,
    sorted: _b.bool = True,
    return_inverse: _b.bool = False,
    return_counts: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def all(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def amax(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def amin(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def aminmax(
    input: Tensor, *, dim: _b.int | None = None, keepdim: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.aminmax: ...
def any(input: Tensor, dim: Ints | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
def argmax(
    input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None
) -> Tensor: ...
def argmin(
    input: Tensor, dim: _b.int | None = None, keepdim: _b.bool = False, *, out: Tensor | None = None
) -> Tensor: ...
def argsort(
    input: Tensor, dim: _b.int = -1, descending: _b.bool = False, *, stable: _b.bool = False, out: Tensor | None = None
) -> Tensor: ...
def argwhere(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: _b.int = 0, *, out: Tensor | None = None
) -> Tensor: ...
def bucketize(
    input: Tensor | Number,
    boundaries: Tensor,
    *,
    out_int32: _b.bool = False,
    right: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def count_nonzero(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor: ...
def cummax(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummax: ...
def cummin(input: Tensor, dim: _b.int, *, out: Sequence[Tensor] | None = None) -> results.cummin: ...
def cumprod(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor: ...
def cumsum(input: Tensor, dim: _b.int, *, dtype: DType | None = None, out: Tensor | None = None) -> Tensor: ...
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor: ...
def diff(
    input: Tensor,
    n: _b.int = 1,
    dim: _b.int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def gradient(
    input: Tensor,
    *,
    spacing: Number | Sequence[Number] | Tensor | Sequence[Tensor] | None = None,
    dim: _b.int | None = None,
    edge_order: _b.int = 1,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def hash_tensor(
    input: Tensor, dim: _b.int | None = None, *, keepdim: _b.bool = False, mode: _b.int = 0, out: Tensor | None = None
) -> Tensor: ...
def histc(
    input: Tensor, bins: _b.int = 100, min: Number = 0, max: Number = 0, *, out: Tensor | None = None
) -> Tensor: ...
def histogram(
    input: Tensor,
    bins: Tensor | _b.int,
    *,
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
    out: Sequence[Tensor] | None = None,
) -> results.histogram: ...
def histogramdd(
    input: Tensor,
    bins: Tensor | Ints | Sequence[Tensor],
    *,
    range: Sequence[_b.float] | None = None,
    weight: Tensor | None = None,
    density: _b.bool = False,
    out: Sequence[Tensor] | None = None,
) -> results.histogramdd: ...
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: _b.bool = False,
    invert: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def kthvalue(
    input: Tensor, k: _b.int, dim: _b.int = -1, keepdim: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> results.kthvalue: ...
def log_softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: _b.int, *, out: Tensor | None = None) -> Tensor: ...
def logsumexp(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor) -> Tensor: ...
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
) -> Tensor: ...
@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.median: ...
@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(
    input: Tensor, dim: _b.int, keepdim: _b.bool = False, *, out: tuple[Tensor, Tensor] | None = None
) -> results.min: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mode(
    input: Tensor, dim: _b.int = -1, keepdim: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> results.mode: ...
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmedian(input: Tensor) -> Tensor: ...
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
) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero_static(
    input: Tensor, *, size: Ints, fill_value: Number | Tensor = -1, out: Tensor | None = None
) -> Tensor: ...
def prod(
    input: Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def quantile(
    input: Tensor,
    q: _b.float | Tensor,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
    *,
    interpolation: _b.str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: _b.bool = False,
    right: _b.bool = False,
    side: _b.str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
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
) -> Tensor: ...
def softmax(input: Tensor, dim: _b.int, dtype: DType | None = None, *, out: Tensor | None = None) -> Tensor: ...
def sort(
    input: Tensor,
    dim: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.sort: ...
def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def sum(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def topk(
    input: Tensor,
    k: _b.int,
    dim: _b.int = -1,
    largest: _b.bool = True,
    sorted: _b.bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.topk: ...
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor: ...
def trapz(
    y: Tensor, x: Tensor | None = None, *, dx: _b.float | None = None, dim: _b.int = -1, out: Tensor | None = None
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: _b.bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _b.int | None = None,
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    *,
    correction: _b.float | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def cumprod_(input: Tensor, dim: _b.int, *, dtype: DType | None = None) -> Tensor: ...
def cumsum_(input: Tensor, dim: _b.int, *, dtype: DType | None = None) -> Tensor: ...
