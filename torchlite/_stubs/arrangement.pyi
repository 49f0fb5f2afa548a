# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: arrangement."""

import builtins as _b
from collections.abc import Callable, Sequence
from typing import Any, Self, overload

from .aliases import DType, Ints, MemoryFormat, Number
from .basic import TypedStorage, UntypedStorage
from .tensor import Tensor

class ArrangementMethods:
    def _lazy_clone(self) -> Tensor:
        """A clone whose storage shares the input's memory until one of the two is written, if the backend supports it
        and no other object writes there; else an ordinary clone.

        >>> x = torch.zeros(2)
        >>> y = x._lazy_clone()
        >>> y.add_(1), x
        (tensor([1., 1.]), tensor([0., 0.]))
        """
    def adjoint(self) -> Tensor:
        """The conjugate transpose of the last two dimensions."""
    def alias(self) -> Tensor:
        """A view of the entire tensor."""
    def as_strided(self, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
        """A view of the memory under `input` with the given size, strides and storage offset (the input's own by
        default), all in elements.

        RuntimeError when it would leave the memory.

        >>> torch.as_strided(torch.tensor([1, 2, 3]), (2, 2), (1, 1))
        tensor([[1, 2],
                [2, 3]])
        """
    def as_strided_(self, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Self:
        """Set the tensor's size, strides and storage offset on its memory; returns the tensor."""
    def as_strided_scatter(self, src: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
        """A copy of `input` with `src` written into its view `as_strided(size, stride, storage_offset)`."""
    def broadcast_to(self, *size: Ints) -> Tensor:
        """`input` expanded to `size` by broadcasting, as a view."""
    def chunk(self, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """`input` cut into (at most) `chunks` equal parts along `dim`, the last perhaps smaller, as views.

        >>> [p.tolist() for p in torch.chunk(torch.tensor([1, 2, 3]), 2)]
        [[1, 2], [3]]
        """
    def clone(self, *, memory_format: MemoryFormat | None = None) -> Tensor:
        """A copy of the tensor, in its memory order unless `memory_format` says otherwise;
        gradients flow through it.
        """
    def contiguous(self, memory_format: MemoryFormat | None = None) -> Tensor:
        """The tensor itself when its elements lie in row-major order (or in `memory_format`), else
        a copy that does.
        """
    def copy_(self, src: Tensor | Number, non_blocking: _b.bool = False) -> Self:
        """Write `src` (a tensor or a number), broadcast and cast, into the tensor; returns the tensor. RuntimeError
        when the shapes do not fit. `non_blocking` has no effect: a copy is complete, or ordered by the stream, on
        return.
        """
    def diag(self, diagonal: _b.int = 0) -> Tensor:
        """For a vector, the matrix with it on a diagonal; for a matrix, a diagonal as a vector.

        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
        """
    def diag_embed(self, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1) -> Tensor:
        """Matrices (in the plane of `dim1` and `dim2`) with the last dimension of `input` on a diagonal and zeros
        elsewhere.

        >>> torch.diag_embed(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        """
    def diagflat(self, offset: _b.int = 0) -> Tensor:
        """The matrix with the elements of `input` on a diagonal."""
    def diagonal(self, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
        """The diagonal of the plane of `dim1` and `dim2` as a view, with the diagonal as the last dimension; `offset`
        counts diagonals above it.

        >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
        """
    def diagonal_scatter(self, src: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
        """`input` with `src` in place of the diagonal that `diagonal(offset, dim1, dim2)` gives."""
    def dsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """`tensor_split` along the third dimension; a number of parts must divide its size."""
    def equal(self, other: Tensor) -> _b.bool:
        """True if two tensors have the same shape and equal elements: a bool.

        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
        """
    def expand(self, *size: Ints) -> Tensor:
        """A view in which dimensions of length one are repeated without a copy, and new ones come first; -1 keeps a
        length.

        >>> torch.tensor([[1], [2]]).expand(2, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
        """
    def expand_as(self, other: Tensor) -> Tensor:
        """`input` expanded to `other`'s shape, as a view."""
    def fill_(self, value: Tensor | Number) -> Self:
        """Write a number (or a 0-d tensor) into every element; returns the tensor."""
    def fill_diagonal_(self, fill_value: Number, wrap: _b.bool = False) -> Self:
        """Write a number on the main diagonal (of a tall matrix, with `wrap`, again below each empty row); returns the
        tensor.
        """
    def flatten(self, start_dim: _b.int = 0, end_dim: _b.int = -1) -> Tensor:
        """`input` with the dimensions `start_dim` to `end_dim` flattened to one.

        >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
        torch.Size([2, 12])
        """
    def flip(self, *dims: Ints) -> Tensor:
        """A copy with the order of elements reversed along the given dimensions."""
    def fliplr(self) -> Tensor:
        """`input` with its second dimension reversed."""
    def flipud(self) -> Tensor:
        """`input` with its first dimension reversed."""
    def gather(self, dim: _b.int, index: Tensor, *, sparse_grad: _b.bool = False) -> Tensor:
        """For each place of `index` (int64) the element of `input` that it names along `dim`: shape of `index`.
         RuntimeError for an index out of
        range.

         >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
         tensor([[1],
                 [4]])

        """
    def hsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """`tensor_split` along the second dimension (the first of a vector); a number of parts must divide its
        size.
        """
    def index_add(self, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """`input` with the slices of `source` (times `alpha`) added at `index` along `dim`; repeated indices add up.

        >>> torch.index_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]))
        tensor([0., 5.])
        """
    def index_copy(self, dim: _b.int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with the slices of `source` written at `index` along `dim`.

        >>> torch.index_copy(torch.zeros(2), 0, torch.tensor([1]), torch.tensor([2.]))
        tensor([0., 2.])
        """
    def index_fill(self, dim: _b.int, index: Tensor, value: Tensor | Number) -> Tensor:
        """`input` with `value` (a number or a 0-d tensor) in the slices at `index` along `dim`.

        >>> torch.index_fill(torch.zeros(2), 0, torch.tensor([1]), 5)
        tensor([0., 5.])
        """
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Tensor:
        """`input` with `values` written (or added, if `accumulate`) at `input[indices]`; `indices` is a tuple of
        tensors, None for an entire dimension.

        >>> torch.index_put(torch.zeros(3), (torch.tensor([1]),), torch.tensor(2.))
        tensor([0., 2., 0.])
        """
    def index_reduce(
        self, dim: _b.int, index: Tensor, source: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Tensor:
        """`input` with the slices of `source` combined into the slices at `index` along `dim`, by "prod", "mean",
        "amax" or "amin".
        """
    def index_select(self, dim: _b.int, index: Tensor) -> Tensor:
        """The slices of `input` at `index` (a vector of int32 or int64) along `dim`. IndexError for an index out of
        range.

        >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([0]))
        tensor([[1],
                [3]])
        """
    def is_nonzero(self) -> _b.bool:
        """True if the one element of the tensor is not zero. RuntimeError for more elements."""
    def is_same_size(self, other: Tensor) -> _b.bool:
        """True if two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _b.bool:
        """True if two tensors have the same memory, offset, shape and strides."""
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Self:
        """Replace each element a by `callable(a, b, c)` of the elements of `x` and `y` there, in place (slow; CPU
        only).

        >>> torch.tensor([1., 2.]).map2_(torch.tensor([3., 4.]), torch.tensor(5.), lambda a, b, c: a * b + c)
        tensor([ 8., 13.])
        """
    def map_(self, tensor: Tensor, callable: Callable[..., Any]) -> Self:
        """Replace each element a by `callable(a, b)`, b being the element of `tensor` there, in place (slow; CPU
        only).
        """
    def masked_fill(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        """`input` with `value` (a number or a 0-d tensor) where `mask` (bool, broadcast with `input`) is true.

        >>> torch.masked_fill(torch.tensor([1., 2.]), torch.tensor([False, True]), 0)
        tensor([1., 0.])
        """
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """`input` with the elements of `source`, in order, where `mask` is true. RuntimeError when `source` has too
        few.

        >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1., 2.]))
        tensor([1., 0., 2.])
        """
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements of `input` where `mask` (bool, broadcast with `input`) is true, as a vector.

        >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
        tensor([1, 3])
        """
    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """`input` with the dimensions `source` (an int or several) at the places `destination`, the others in their
        order, as a view.

        >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
        """
    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """`input` with the dimensions `source` (an int or several) at the places `destination`, the others in their
        order, as a view.

        >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
        """
    def narrow(self, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
        """The `length` entries of a dimension from `start` on, as a view."""
    def narrow_copy(self, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
        """A copy of the `length` entries of a dimension from `start` on.

        >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
        tensor([1, 2])
        """
    def permute(self, *dims: Ints) -> Tensor:
        """A view with the dimensions in the given order.

        >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
        """
    def put(self, index: Tensor, source: Tensor, accumulate: _b.bool = False) -> Tensor:
        """`input` with `source` written (or added) at `index` into the flattened elements."""
    def ravel(self) -> Tensor:
        """All elements as a vector; a view where memory allows."""
    def repeat(self, *repeats: Ints) -> Tensor:
        """`input` repeated so many times along each dimension; new dimensions come first.

        >>> torch.tensor([1, 2]).repeat(2)
        tensor([1, 2, 1, 2])
        """
    def repeat_interleave(
        self, repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None
    ) -> Tensor:
        """Each element of `input` (each slice along `dim`) `repeats` times, one after the other; of a vector of counts
        alone, each index so many times.

        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
        """
    def reshape(self, *shape: Ints) -> Tensor:
        """The elements in another shape, in which one length may be -1: a view where memory allows, else a copy.
        RuntimeError when the counts differ.

        >>> torch.reshape(torch.tensor([1, 2, 3, 4]), (2, -1))
        tensor([[1, 2],
                [3, 4]])
        """
    def reshape_as(self, other: Tensor) -> Tensor:
        """`input` reshaped to `other`'s shape."""
    def resize_(self, *size: Ints, memory_format: MemoryFormat | None = None) -> Self:
        """Resize the tensor. Elements keep their order; new ones are uninitialised. Returns the tensor."""
    def resize_as_(self, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Self:
        """Resize the tensor to the shape of another; see `resize_`."""
    def roll(self, shifts: Ints, dims: Ints = ...) -> Tensor:
        """`input` with elements moved on by `shifts` along `dims` (along the flattened elements without any); what
         falls off the end comes in at the
        front.

         >>> torch.roll(torch.tensor([1, 2, 3]), 1)
         tensor([3, 1, 2])

        """
    def rot90(self, k: _b.int = 1, dims: Ints = ...) -> Tensor:
        """`input` turned by `k` quarter turns in the plane of two dimensions, from the first towards the second."""
    def scatter(
        self,
        dim: _b.int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Number | None = None,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """`input` with the elements of `src` (or one number) written at the places that `index` names along `dim`; with
         `reduce` ("add" or
        "multiply") combined.

         >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([5., 6.]))
         tensor([6., 0., 5.])

        """
    def scatter_add(self, dim: _b.int, index: Tensor, src: Tensor) -> Tensor:
        """`input` with each element of `src` added at the place that `index` names along `dim`; repeated places add up.

        >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]))
        tensor([0., 5.])
        """
    def scatter_reduce(
        self, dim: _b.int, index: Tensor, src: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Tensor:
        """`input` with the elements of `src` combined into the places that `index` names along `dim`, by "sum", "prod",
        "mean", "amax" or "amin"; with `include_self=False` what stood at those places is left out.

        >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]), "amax")
        tensor([0., 3.])
        """
    def select(self, dim: _b.int, index: _b.int) -> Tensor:
        """The slice `index` along `dim`, as a view without that dimension.

        >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([3, 4])
        """
    def select_scatter(self, src: Tensor, dim: _b.int, index: _b.int) -> Tensor:
        """`input` with `src` in place of its slice `index` along `dim`."""
    def set_(
        self,
        source: Tensor | UntypedStorage | TypedStorage | None = None,
        storage_offset: _b.int = 0,
        size: Ints | None = None,
        stride: Ints | None = None,
    ) -> Self:
        """Let the tensor share the memory of `source` (a tensor of the same dtype, or a storage), or hold nothing;
        returns the tensor. A storage that is too small for the size grows.
        """
    def slice_scatter(
        self,
        src: Tensor,
        dim: _b.int = 0,
        start: Number | Tensor | None = None,
        end: Number | Tensor | None = None,
        step: Number = 1,
    ) -> Tensor:
        """`input` with `src` in place of its slice `start:end:step` along `dim`."""
    def split(
        self, split_size_or_sections: Ints | None = None, dim: _b.int = 0, *, split_size: Ints | None = None
    ) -> tuple[Tensor, ...]:
        """Parts of `split_size` (the last may be smaller), or of the listed sizes, along `dim`, as views.

        >>> [p.tolist() for p in torch.split(torch.tensor([1, 2, 3]), 2)]
        [[1, 2], [3]]
        """
    def split_with_sizes(self, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Consecutive parts of the given sizes along `dim`, as views."""
    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """A view without the dimensions of length one, of all or of `dim` (an int or several)."""
    def squeeze_(self, dim: Ints | None = None) -> Self:
        """Give the tensor the shape and order that `squeeze` gives; returns the tensor."""
    def swapaxes(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """A view with two dimensions swapped."""
    def swapaxes_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Give the tensor the shape and order that `swapaxes` gives; returns the tensor."""
    def swapdims(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """A view with two dimensions swapped."""
    def swapdims_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Give the tensor the shape and order that `swapdims` gives; returns the tensor."""
    def t(self) -> Tensor:
        """The transpose of a matrix, as a view; a vector or a number itself."""
    def t_(self) -> Self:
        """Transpose the matrix in place (its memory stays); returns the tensor."""
    def take(self, index: Tensor) -> Tensor:
        """The elements of the flattened `input` at `index` (int64): shape of `index`.

        >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
        tensor([1, 4])
        """
    def take_along_dim(self, indices: Tensor, dim: _b.int | None = None) -> Tensor:
        """The elements of `input` at `indices` along `dim` (of the flattened input without one), as `gather`, but
        broadcasting the other dimensions.

        >>> torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1, 2]]), 1)
        tensor([[1, 2]])
        """
    def tensor_split(
        self,
        indices_or_sections: Ints | Tensor | None = None,
        dim: _b.int = 0,
        *,
        indices: Sequence[_b.int] | None = None,
        sections: Any = None,
        tensor_indices_or_sections: Any = None,
    ) -> tuple[Tensor, ...]:
        """`input` cut along `dim` into a number of parts that differ by one at most, or before each of the given
        indices, as views.
        """
    def tile(self, *dims: Ints) -> Tensor:
        """`input` repeated along each dimension, missing counts (at the front) taken as one."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""
    def transpose(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """A view with two dimensions swapped."""
    def transpose_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Give the tensor the shape and order that `transpose` gives; returns the tensor."""
    def tril(self, diagonal: _b.int = 0) -> Tensor:
        """The lower triangle of the last two dimensions, up to the given diagonal, with zeros above it."""
    def triu(self, diagonal: _b.int = 0) -> Tensor:
        """The upper triangle of the last two dimensions, from the given diagonal, with zeros below it."""
    def unbind(self, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """The slices along `dim`, as views without that dimension."""
    def unflatten(self, dim: _b.int, sizes: Sequence[_b.int]) -> Tensor:
        """`input` with the dimension `dim` expanded to several of the given `sizes` (one may be -1)."""
    def unfold(self, dimension: _b.int, size: Ints, step: Any) -> Tensor:
        """All windows of `size` along `dimension`, `step` apart, as a view with the window as a new last dimension.

        >>> torch.tensor([1, 2, 3]).unfold(0, 2, 1)
        tensor([[1, 2],
                [2, 3]])
        """
    def unsafe_chunk(self, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """`chunk`, whose parts may be written to; gradients do not know that they share memory."""
    def unsafe_split(self, split_size: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """`split`, whose parts may be written to; gradients do not know that they share memory."""
    def unsafe_split_with_sizes(self, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """`split_with_sizes`, whose parts may be written to; gradients do not know that they share memory."""
    def unsqueeze(self, dim: _b.int) -> Tensor:
        """A view with a new dimension of length one before `dim`."""
    def unsqueeze_(self, dim: _b.int) -> Self:
        """Give the tensor the shape and order that `unsqueeze` gives; returns the tensor."""
    @overload
    def view(self, dtype: DType, /) -> Tensor:
        """The same memory with another shape (or, given a dtype, read as that dtype). RuntimeError when strides do not
        allow it.
        """
    @overload
    def view(self, *size: Ints) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """`input` viewed with `other`'s shape."""
    def vsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """`tensor_split` along the first dimension; a number of parts must divide its size."""
    def zero_(self) -> Self:
        """Set every element to zero; returns the tensor."""
    def index_add_(self, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Self:
        """In-place version of `index_add`: writes the result into the tensor and returns it."""
    def index_copy_(self, dim: _b.int, index: Tensor, source: Tensor) -> Self:
        """In-place version of `index_copy`: writes the result into the tensor and returns it."""
    def index_fill_(self, dim: _b.int, index: Tensor, value: Tensor | Number) -> Self:
        """In-place version of `index_fill`: writes the result into the tensor and returns it."""
    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Self:
        """In-place version of `index_put`: writes the result into the tensor and returns it."""
    def index_reduce_(
        self, dim: _b.int, index: Tensor, source: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Self:
        """In-place version of `index_reduce`: writes the result into the tensor and returns it."""
    def masked_fill_(self, mask: Tensor, value: Tensor | Number) -> Self:
        """In-place version of `masked_fill`: writes the result into the tensor and returns it."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Self:
        """In-place version of `masked_scatter`: writes the result into the tensor and returns it."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _b.bool = False) -> Self:
        """In-place version of `put`: writes the result into the tensor and returns it."""
    def scatter_(
        self,
        dim: _b.int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Any = None,
        reduce: _b.str | None = None,
    ) -> Self:
        """In-place version of `scatter`: writes the result into the tensor and returns it."""
    def scatter_add_(self, dim: _b.int, index: Tensor, src: Tensor) -> Self:
        """In-place version of `scatter_add`: writes the result into the tensor and returns it."""
    def scatter_reduce_(
        self, dim: _b.int, index: Tensor, src: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Self:
        """In-place version of `scatter_reduce`: writes the result into the tensor and returns it."""
    def tril_(self, diagonal: _b.int = 0) -> Self:
        """In-place version of `tril`: writes the result into the tensor and returns it."""
    def triu_(self, diagonal: _b.int = 0) -> Self:
        """In-place version of `triu`: writes the result into the tensor and returns it."""

def _chunk_cat(tensors: Sequence[Tensor], dim: _b.int, num_chunks: Any, *, out: Tensor | None = None) -> Tensor:
    """Each tensor filled up with zeros along `dim` and cut there into `num_chunks`, whose elements lie in a row; the
    rows of all tensors joined.
    """

def _lazy_clone(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A clone whose storage shares the input's memory until one of the two is written, if the backend supports it and
    no other object writes there; else an ordinary clone.

    >>> x = torch.zeros(2)
    >>> y = x._lazy_clone()
    >>> y.add_(1), x
    (tensor([1., 1.]), tensor([0., 0.]))
    """

def adjoint(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate transpose of the last two dimensions."""

def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `alias` gives."""

def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
    """A view of the memory under `input` with the given size, strides and storage offset (the input's own by default),
    all in elements.

    RuntimeError when it would leave the memory.

    >>> torch.as_strided(torch.tensor([1, 2, 3]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """

def as_strided_(input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
    """Set the tensor's size, strides and storage offset on its memory; returns the tensor."""

def as_strided_copy(
    input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what `as_strided` gives."""

def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Ints,
    stride: Ints,
    storage_offset: _b.int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of `input` with `src` written into its view `as_strided(size, stride, storage_offset)`."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """Each tensor with at least one dimension."""

@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """Each tensor with at least two dimensions; new dimensions are leading ones."""

@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """Each tensor with at least three dimensions; a matrix gets the new one last."""

@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """A matrix with the given matrices (numbers, vectors as rows) along its diagonal and zeros elsewhere."""

def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape, as views."""

def broadcast_to(input: Tensor, *size: Ints, out: Tensor | None = None) -> Tensor:
    """`input` expanded to `size` by broadcasting, as a view."""

def cat(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the existing dimension `dim`; the other lengths must agree, and dtypes are promoted.

    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """

def chunk(input: Tensor, chunks: _b.int, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """`input` cut into (at most) `chunks` equal parts along `dim`, the last perhaps smaller, as views.

    >>> [p.tolist() for p in torch.chunk(torch.tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """

def clone(input: Tensor, *, memory_format: MemoryFormat | None = None, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor, in its memory order unless `memory_format` says otherwise;
    gradients flow through it.
    """

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors as columns."""

def concat(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the existing dimension `dim`; the other lengths must agree, and dtypes are promoted.

    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """

def concatenate(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the existing dimension `dim`; the other lengths must agree, and dtypes are promoted.

    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """

def detach(input: Tensor) -> Tensor:
    """A tensor on the same memory without history."""

def detach_(input: Tensor) -> Tensor:
    """Drop the tensor's history in place; returns the tensor."""

def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor without history."""

def diag(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """For a vector, the matrix with it on a diagonal; for a matrix, a diagonal as a vector.

    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """

def diag_embed(
    input: Tensor, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Matrices (in the plane of `dim1` and `dim2`) with the last dimension of `input` on a diagonal and zeros
    elsewhere.

    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """

def diagflat(input: Tensor, offset: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The matrix with the elements of `input` on a diagonal."""

def diagonal(input: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
    """The diagonal of the plane of `dim1` and `dim2` as a view, with the diagonal as the last dimension; `offset`
    counts diagonals above it.

    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """

def diagonal_copy(
    input: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what `diagonal` gives."""

def diagonal_scatter(
    input: Tensor, src: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1, *, out: Tensor | None = None
) -> Tensor:
    """`input` with `src` in place of the diagonal that `diagonal(offset, dim1, dim2)` gives."""

def dsplit(
    input: Tensor, indices_or_sections: Ints | Tensor, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension; a number of parts must divide its size."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the third dimension."""

def equal(input: Tensor, other: Tensor) -> _b.bool:
    """True if two tensors have the same shape and equal elements: a bool.

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """

def expand_copy(input: Tensor, size: Ints, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `expand` gives."""

def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Write a number (or a 0-d tensor) into every element; returns the tensor."""

def flatten(input: Tensor, start_dim: _b.int = 0, end_dim: _b.int = -1, *, out: Tensor | None = None) -> Tensor:
    """`input` with the dimensions `start_dim` to `end_dim` flattened to one.

    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """

def flip(input: Tensor, *dims: Ints, out: Tensor | None = None) -> Tensor:
    """A copy with the order of elements reversed along the given dimensions."""

def fliplr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with its second dimension reversed."""

def flipud(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with its first dimension reversed."""

def gather(
    input: Tensor, dim: _b.int, index: Tensor, *, sparse_grad: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """For each place of `index` (int64) the element of `input` that it names along `dim`: shape of `index`.
     RuntimeError for an index out of
    range.

     >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
     tensor([[1],
             [4]])

    """

def hsplit(
    input: Tensor, indices_or_sections: Ints | Tensor, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension (the first of a vector); a number of parts must divide its size."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the second dimension, vectors along the first."""

def index_add(
    input: Tensor, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """`input` with the slices of `source` (times `alpha`) added at `index` along `dim`; repeated indices add up.

    >>> torch.index_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]))
    tensor([0., 5.])
    """

def index_copy(input: Tensor, dim: _b.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with the slices of `source` written at `index` along `dim`.

    >>> torch.index_copy(torch.zeros(2), 0, torch.tensor([1]), torch.tensor([2.]))
    tensor([0., 2.])
    """

def index_fill(
    input: Tensor, dim: _b.int, index: Tensor, value: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) in the slices at `index` along `dim`.

    >>> torch.index_fill(torch.zeros(2), 0, torch.tensor([1]), 5)
    tensor([0., 5.])
    """

def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with `values` written (or added, if `accumulate`) at `input[indices]`; `indices` is a tuple of tensors,
    None for an entire dimension.

    >>> torch.index_put(torch.zeros(3), (torch.tensor([1]),), torch.tensor(2.))
    tensor([0., 2., 0.])
    """

def index_reduce(
    input: Tensor,
    dim: _b.int,
    index: Tensor,
    source: Tensor,
    reduce: _b.str,
    *,
    include_self: _b.bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with the slices of `source` combined into the slices at `index` along `dim`, by "prod", "mean", "amax" or
    "amin".
    """

def index_select(input: Tensor, dim: _b.int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of `input` at `index` (a vector of int32 or int64) along `dim`. IndexError for an index out of
    range.

    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([0]))
    tensor([[1],
            [3]])
    """

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) where `mask` (bool, broadcast with `input`) is true.

    >>> torch.masked_fill(torch.tensor([1., 2.]), torch.tensor([False, True]), 0)
    tensor([1., 0.])
    """

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with the elements of `source`, in order, where `mask` is true. RuntimeError when `source` has too
    few.

    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of `input` where `mask` (bool, broadcast with `input`) is true, as a vector.

    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """

def moveaxis(input: Tensor, source: Ints, destination: Ints, *, out: Tensor | None = None) -> Tensor:
    """`input` with the dimensions `source` (an int or several) at the places `destination`, the others in their order,
    as a view.

    >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """

def movedim(input: Tensor, source: Ints, destination: Ints, *, out: Tensor | None = None) -> Tensor:
    """`input` with the dimensions `source` (an int or several) at the places `destination`, the others in their order,
    as a view.

    >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """

def narrow(input: Tensor, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
    """The `length` entries of a dimension from `start` on, as a view."""

def narrow_copy(
    input: Tensor, dim: _b.int, start: Number | Tensor, length: _b.int, *, out: Tensor | None = None
) -> Tensor:
    """A copy of the `length` entries of a dimension from `start` on.

    >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """

def permute(input: Tensor, *dims: Ints) -> Tensor:
    """A view with the dimensions in the given order.

    >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """

def permute_copy(input: Tensor, dims: Ints, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `permute` gives."""

def put(
    input: Tensor, index: Tensor, source: Tensor, accumulate: _b.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """`input` with `source` written (or added) at `index` into the flattened elements."""

def ravel(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All elements as a vector; a view where memory allows."""

@overload
def repeat_interleave(repeats: Tensor, *, output_size: _b.int | None = None) -> Tensor:
    """Each element of `input` (each slice along `dim`) `repeats` times, one after the other; of a vector of counts
    alone, each index so many times.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """

@overload
def repeat_interleave(
    input: Tensor, repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None
) -> Tensor: ...
def reshape(input: Tensor, *shape: Ints, out: Tensor | None = None) -> Tensor:
    """The elements in another shape, in which one length may be -1: a view where memory allows, else a copy.
    RuntimeError when the counts differ.

    >>> torch.reshape(torch.tensor([1, 2, 3, 4]), (2, -1))
    tensor([[1, 2],
            [3, 4]])
    """

def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Resize the tensor to the shape of another; see `resize_`."""

def roll(input: Tensor, shifts: Ints, dims: Ints = ..., *, out: Tensor | None = None) -> Tensor:
    """`input` with elements moved on by `shifts` along `dims` (along the flattened elements without any); what
     falls off the end comes in at the
    front.

     >>> torch.roll(torch.tensor([1, 2, 3]), 1)
     tensor([3, 1, 2])

    """

def rot90(input: Tensor, k: _b.int = 1, dims: Ints = ..., *, out: Tensor | None = None) -> Tensor:
    """`input` turned by `k` quarter turns in the plane of two dimensions, from the first towards the second."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the first dimension, vectors as rows."""

def scatter(
    input: Tensor,
    dim: _b.int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: _b.str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with the elements of `src` (or one number) written at the places that `index` names along `dim`; with
     `reduce` ("add" or
    "multiply") combined.

     >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([5., 6.]))
     tensor([6., 0., 5.])

    """

def scatter_add(input: Tensor, dim: _b.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` with each element of `src` added at the place that `index` names along `dim`; repeated places add up.

    >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]))
    tensor([0., 5.])
    """

def scatter_reduce(
    input: Tensor,
    dim: _b.int,
    index: Tensor,
    src: Tensor,
    reduce: _b.str,
    *,
    include_self: _b.bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with the elements of `src` combined into the places that `index` names along `dim`, by "sum", "prod",
    "mean", "amax" or "amin"; with `include_self=False` what stood at those places is left out.

    >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2., 3.]), "amax")
    tensor([0., 3.])
    """

def select(input: Tensor, dim: _b.int, index: _b.int) -> Tensor:
    """The slice `index` along `dim`, as a view without that dimension.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """

def select_copy(input: Tensor, dim: _b.int, index: _b.int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `select` gives."""

def select_scatter(input: Tensor, src: Tensor, dim: _b.int, index: _b.int, *, out: Tensor | None = None) -> Tensor:
    """`input` with `src` in place of its slice `index` along `dim`."""

def slice_copy(
    input: Tensor,
    dim: _b.int = 0,
    start: Number | Tensor | None = None,
    end: Number | Tensor | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of what `slice` gives."""

def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: _b.int = 0,
    start: Number | Tensor | None = None,
    end: Number | Tensor | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with `src` in place of its slice `start:end:step` along `dim`."""

def split(
    input: Tensor, split_size_or_sections: Ints | None = None, dim: _b.int = 0, *, split_size: Ints | None = None
) -> tuple[Tensor, ...]:
    """Parts of `split_size` (the last may be smaller), or of the listed sizes, along `dim`, as views.

    >>> [p.tolist() for p in torch.split(torch.tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """

def split_copy(
    input: Tensor, split_size: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Copies of parts of `split_size`, or of the listed sizes, along `dim`."""

def split_with_sizes(input: Tensor, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts of the given sizes along `dim`, as views."""

def split_with_sizes_copy(
    input: Tensor, split_sizes: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Copies of consecutive parts of the given sizes along `dim`."""

def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """A view without the dimensions of length one, of all or of `dim` (an int or several)."""

def squeeze_copy(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `squeeze` gives."""

def stack(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape put side by side along a new dimension `dim`. RuntimeError for different shapes.

    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """

def swapaxes(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """A view with two dimensions swapped."""

def swapdims(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """A view with two dimensions swapped."""

def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; a vector or a number itself."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `t` gives."""

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of the flattened `input` at `index` (int64): shape of `index`.

    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])
    """

def take_along_dim(input: Tensor, indices: Tensor, dim: _b.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The elements of `input` at `indices` along `dim` (of the flattened input without one), as `gather`, but
    broadcasting the other dimensions.

    >>> torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1, 2]]), 1)
    tensor([[1, 2]])
    """

def tensor_split(
    input: Tensor,
    indices_or_sections: Ints | Tensor | None = None,
    dim: _b.int = 0,
    *,
    indices: Sequence[_b.int] | None = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """`input` cut along `dim` into a number of parts that differ by one at most, or before each of the given indices,
    as views.
    """

def tile(input: Tensor, *dims: Ints, out: Tensor | None = None) -> Tensor:
    """`input` repeated along each dimension, missing counts (at the front) taken as one."""

def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of a matrix's diagonal."""

def transpose(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """A view with two dimensions swapped."""

def transpose_copy(input: Tensor, dim0: _b.int, dim1: _b.int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `transpose` gives."""

def tril(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of the last two dimensions, up to the given diagonal, with zeros above it."""

def triu(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of the last two dimensions, from the given diagonal, with zeros below it."""

def unbind(input: Tensor, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, as views without that dimension."""

def unbind_copy(input: Tensor, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Copies of the slices along `dim`."""

def unflatten(input: Tensor, dim: _b.int, sizes: Sequence[_b.int], *, out: Tensor | None = None) -> Tensor:
    """`input` with the dimension `dim` expanded to several of the given `sizes` (one may be -1)."""

def unfold_copy(input: Tensor, dimension: _b.int, size: Ints, step: Any, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unfold` gives."""

def unravel_index(indices: Tensor, shape: Ints) -> Tensor:
    """The coordinates in an array of `shape` of flat `indices`: a tuple of one tensor a dimension.

    >>> torch.unravel_index(torch.tensor(5), (2, 3))
    (tensor(1), tensor(2))
    """

def unsafe_chunk(
    input: Tensor, chunks: _b.int, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`chunk`, whose parts may be written to; gradients do not know that they share memory."""

def unsafe_split(
    input: Tensor, split_size: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split`, whose parts may be written to; gradients do not know that they share memory."""

def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split_with_sizes`, whose parts may be written to; gradients do not know that they share memory."""

def unsqueeze(input: Tensor, dim: _b.int) -> Tensor:
    """A view with a new dimension of length one before `dim`."""

def unsqueeze_copy(input: Tensor, dim: _b.int, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `unsqueeze` gives."""

def view_as_complex(input: Tensor) -> Tensor:
    """A real tensor with a last dimension of two (real and imaginary part) as a complex view."""

def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_complex` gives."""

def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as a real view with a last dimension of two: real and imaginary part."""

def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view_as_real` gives."""

def view_copy(input: Tensor, size: Ints, *, out: Tensor | None = None) -> Tensor:
    """A copy of what `view` gives."""

def vsplit(
    input: Tensor, indices_or_sections: Ints | Tensor, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`tensor_split` along the first dimension; a number of parts must divide its size."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along the first dimension, vectors as rows."""

def zero_(input: Tensor) -> Tensor:
    """Set every element to zero; returns the tensor."""

def index_add_(input: Tensor, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """In-place version of `index_add`: writes the result into the tensor and returns it."""

def index_copy_(input: Tensor, dim: _b.int, index: Tensor, source: Tensor) -> Tensor:
    """In-place version of `index_copy`: writes the result into the tensor and returns it."""

def index_fill_(input: Tensor, dim: _b.int, index: Tensor, value: Tensor | Number) -> Tensor:
    """In-place version of `index_fill`: writes the result into the tensor and returns it."""

def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Tensor:
    """In-place version of `index_put`: writes the result into the tensor and returns it."""

def index_reduce_(
    input: Tensor, dim: _b.int, index: Tensor, source: Tensor, reduce: _b.str, *, include_self: _b.bool = True
) -> Tensor:
    """In-place version of `index_reduce`: writes the result into the tensor and returns it."""

def masked_fill_(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """In-place version of `masked_fill`: writes the result into the tensor and returns it."""

def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place version of `masked_scatter`: writes the result into the tensor and returns it."""

def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: _b.bool = False) -> Tensor:
    """In-place version of `put`: writes the result into the tensor and returns it."""

def scatter_(
    input: Tensor,
    dim: _b.int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Any = None,
    reduce: _b.str | None = None,
) -> Tensor:
    """In-place version of `scatter`: writes the result into the tensor and returns it."""

def scatter_add_(input: Tensor, dim: _b.int, index: Tensor, src: Tensor) -> Tensor:
    """In-place version of `scatter_add`: writes the result into the tensor and returns it."""

def scatter_reduce_(
    input: Tensor, dim: _b.int, index: Tensor, src: Tensor, reduce: _b.str, *, include_self: _b.bool = True
) -> Tensor:
    """In-place version of `scatter_reduce`: writes the result into the tensor and returns it."""

def tril_(input: Tensor, diagonal: _b.int = 0) -> Tensor:
    """In-place version of `tril`: writes the result into the tensor and returns it."""

def triu_(input: Tensor, diagonal: _b.int = 0) -> Tensor:
    """In-place version of `triu`: writes the result into the tensor and returns it."""
