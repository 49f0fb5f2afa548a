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
        """Returns the conjugate transpose of the last two dimensions."""
    def alias(self) -> Tensor:
        """Returns a view of the whole tensor.

        Example:
            >>> torch.tensor([1, 2]).alias()
            tensor([1, 2])
        """
    def as_strided(self, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
        """Returns a view of the input's memory with given sizes and strides."""
    def as_strided_(self, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Self:
        """Sets the tensor's sizes, strides and storage offset on its memory."""
    def as_strided_scatter(self, src: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
        """Returns a copy of the input with another tensor in place of a strided view."""
    def broadcast_to(self, *size: Ints) -> Tensor:
        """Returns a view of the input broadcast to a shape."""
    def chunk(self, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns at most `chunks` parts of equal size, as views."""
    def clone(self, *, memory_format: MemoryFormat | None = None) -> Tensor:
        """Returns a copy of the tensor through which gradients flow."""
    def contiguous(self, *, memory_format: MemoryFormat | None = None) -> Tensor:
        """Returns the tensor itself where its elements are contiguous in memory, else a copy that is."""
    def copy_(self, src: Tensor | Number, non_blocking: _b.bool = False) -> Self:
        """Copies the elements of another tensor into this one, broadcast and converted."""
    def diag(self, diagonal: _b.int = 0) -> Tensor:
        """Returns the matrix with a 1-d tensor on a diagonal, or a diagonal of a matrix as a 1-d copy."""
    def diag_embed(self, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1) -> Tensor:
        """Returns matrices with the input's last dimension on a diagonal and zeros elsewhere."""
    def diagflat(self, offset: _b.int = 0) -> Tensor:
        """Returns the matrix with the flattened elements on a diagonal and zeros elsewhere."""
    def diagonal(self, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
        """Returns the diagonals of matrices in two dimensions, as a view with the diagonal as the last dimension."""
    def diagonal_scatter(self, src: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
        """Returns a copy of the input with another tensor in place of a diagonal."""
    def dsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Splits the input along its third dimension."""
    def equal(self, other: Tensor) -> _b.bool:
        """Returns whether two tensors have the same shape and equal elements."""
    def expand(self, *size: Ints) -> Tensor:
        """Returns a view in which dimensions of size 1 are repeated."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Returns a view of the input expanded to the shape of another tensor."""
    def fill_(self, value: Tensor | Number) -> Self:
        """Sets all elements to a value."""
    def fill_diagonal_(self, fill_value: Number, wrap: _b.bool = False) -> Self:
        """Sets the elements of the main diagonal to a value."""
    def flatten(self, start_dim: _b.int = 0, end_dim: _b.int = -1) -> Tensor:
        """Joins a range of dimensions to one."""
    def flip(self, *dims: Ints) -> Tensor:
        """Returns a copy with the elements in reverse order along dimensions."""
    def fliplr(self) -> Tensor:
        """Returns a copy with the second dimension in reverse order."""
    def flipud(self) -> Tensor:
        """Returns a copy with the first dimension in reverse order."""
    def gather(self, dim: _b.int, index: Tensor, *, sparse_grad: _b.bool = False) -> Tensor:
        """Returns the elements at given indices along a dimension."""
    def hsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Splits the input along its second dimension, or the only one of a 1-d tensor."""
    def index_add(self, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """Returns the input with slices added at given indices along a dimension; repeated indices add up."""
    def index_copy(self, dim: _b.int, index: Tensor, source: Tensor) -> Tensor:
        """Returns the input with slices replaced at given indices along a dimension."""
    def index_fill(self, dim: _b.int, index: Tensor, value: Tensor | Number) -> Tensor:
        """Returns the input with a value in the slices at given indices along a dimension."""
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Tensor:
        """Returns the input with values at the positions of an indexing expression, as ``input[indices] = values``."""
    def index_reduce(
        self, dim: _b.int, index: Tensor, source: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Tensor:
        """Returns the input with slices reduced into those at given indices along a dimension."""
    def index_select(self, dim: _b.int, index: Tensor) -> Tensor:
        """Returns a copy of the slices at given indices along a dimension."""
    def is_nonzero(self) -> _b.bool:
        """Returns whether the only element of the tensor is not zero."""
    def is_same_size(self, other: Tensor) -> _b.bool:
        """Returns whether two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _b.bool:
        """Returns whether two tensors have the same memory, offset, shape and strides."""
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Self:
        """Replaces each element by a function of it and of two other tensors' elements. It is slow, and for the CPU
        alone.
        """
    def map_(self, tensor: Tensor, callable: Callable[..., Any]) -> Self:
        """Replaces each element by a function of it and of another tensor's element. It is slow, and for the CPU
        alone.
        """
    def masked_fill(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        """Returns the input with a value where a mask is true."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Returns the input with the elements of another tensor, in order, where a mask is true."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """Returns the elements where a mask is true, as a 1-d tensor."""
    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """Returns a view with dimensions at other positions; the others keep their order."""
    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """Returns a view with dimensions at other positions; the others keep their order."""
    def narrow(self, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
        """Returns a view of a range of a dimension."""
    def narrow_copy(self, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
        """Returns a copy of a range of a dimension."""
    def permute(self, *dims: Ints) -> Tensor:
        """Returns a view with the dimensions in another order."""
    def put(self, index: Tensor, source: Tensor, accumulate: _b.bool = False) -> Tensor:
        """Returns the input with values at given indices of the flattened elements."""
    def ravel(self) -> Tensor:
        """Returns the elements as a 1-d tensor: a view where the strides allow it, else a copy.

        Example:
            >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
            tensor([1, 2, 3, 4])

        See also:
            `torch.flatten`.
        """
    def repeat(self, *repeats: Ints) -> Tensor:
        """Repeats the tensor along each dimension."""
    def repeat_interleave(
        self, repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None
    ) -> Tensor:
        """Repeats each element, or each slice along a dimension, one after the other."""
    def reshape(self, *shape: Ints) -> Tensor:
        """Returns the elements in another shape."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Returns the elements in the shape of another tensor."""
    def resize_(self, *size: Ints, memory_format: MemoryFormat | None = None) -> Self:
        """Changes the shape in place. The elements keep their order, and additional ones are not initialized."""
    def resize_as_(self, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Self:
        """Changes the shape in place to that of another tensor."""
    def roll(self, shifts: Ints, dims: Ints = ...) -> Tensor:
        """Shifts the elements along dimensions; elements beyond the end come in at the start."""
    def rot90(self, k: _b.int = 1, dims: Ints = ...) -> Tensor:
        """Rotates the input by multiples of 90 degrees in a plane, from the first dimension towards the second."""
    def scatter(
        self,
        dim: _b.int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Number | None = None,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """Returns the input with values at given indices along a dimension."""
    def scatter_add(self, dim: _b.int, index: Tensor, src: Tensor) -> Tensor:
        """Returns the input with values added at given indices along a dimension; repeated indices add up."""
    def scatter_reduce(
        self, dim: _b.int, index: Tensor, src: Tensor, reduce: _b.str, *, include_self: _b.bool = True
    ) -> Tensor:
        """Returns the input with values reduced into given indices along a dimension."""
    def select(self, dim: _b.int, index: _b.int) -> Tensor:
        """Returns the slice at one index of a dimension, as a view without that dimension."""
    def select_scatter(self, src: Tensor, dim: _b.int, index: _b.int) -> Tensor:
        """Returns a copy of the input with another tensor in place of the slice at one index."""
    def set_(
        self,
        source: Tensor | UntypedStorage | TypedStorage | None = None,
        storage_offset: _b.int = 0,
        size: Ints | None = None,
        stride: Ints | None = None,
    ) -> Self:
        """Makes the tensor share the memory of another tensor or of a storage."""
    def slice_scatter(
        self,
        src: Tensor,
        dim: _b.int = 0,
        start: Number | Tensor | None = None,
        end: Number | Tensor | None = None,
        step: Number = 1,
    ) -> Tensor:
        """Returns a copy of the input with another tensor in place of a slice."""
    def split(
        self, split_size_or_sections: Ints | None = None, dim: _b.int = 0, *, split_size: Ints | None = None
    ) -> tuple[Tensor, ...]:
        """Returns parts of equal or given sizes, as views."""
    def split_with_sizes(self, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns consecutive parts of given sizes, as views."""
    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """Returns a view without dimensions of size 1."""
    def squeeze_(self, dim: Ints | None = None) -> Self:
        """Gives the tensor the shape and strides of the view that `squeeze` returns."""
    def swapaxes(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """Returns a view with two dimensions swapped."""
    def swapaxes_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Gives the tensor the shape and strides of the view that `swapaxes` returns."""
    def swapdims(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """Returns a view with two dimensions swapped."""
    def swapdims_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Gives the tensor the shape and strides of the view that `swapdims` returns."""
    def t(self) -> Tensor:
        """Returns the transpose of a matrix, as a view; a tensor of fewer dimensions itself."""
    def t_(self) -> Self:
        """Transposes the matrix in place; the memory stays as it is."""
    def take(self, index: Tensor) -> Tensor:
        """Returns the elements of the flattened input at given indices."""
    def take_along_dim(self, indices: Tensor, dim: _b.int | None = None) -> Tensor:
        """Returns the elements at given indices along a dimension."""
    def tensor_split(
        self,
        indices_or_sections: Ints | Tensor | None = None,
        dim: _b.int = 0,
        *,
        indices: Sequence[_b.int] | None = None,
        sections: Any = None,
        tensor_indices_or_sections: Any = None,
    ) -> tuple[Tensor, ...]:
        """Returns parts by their number or by indices, as views."""
    def tile(self, *dims: Ints) -> Tensor:
        """Repeats the tensor along each dimension; missing counts are 1 and come first."""
    def trace(self) -> Tensor:
        """Returns the sum of a matrix's main diagonal.

        Raises:
            RuntimeError: The input does not have two dimensions.

        Example:
            >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
            tensor(5)
        """
    def transpose(self, dim0: _b.int, dim1: _b.int) -> Tensor:
        """Returns a view with two dimensions swapped."""
    def transpose_(self, dim0: _b.int, dim1: _b.int) -> Self:
        """Gives the tensor the shape and strides of the view that `transpose` returns."""
    def tril(self, diagonal: _b.int = 0) -> Tensor:
        """Returns the lower triangles of matrices in the last two dimensions, with zeros above them."""
    def triu(self, diagonal: _b.int = 0) -> Tensor:
        """Returns the upper triangles of matrices in the last two dimensions, with zeros below them."""
    def unbind(self, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns the slices along a dimension, as views without that dimension."""
    def unflatten(self, dim: _b.int, sizes: Sequence[_b.int]) -> Tensor:
        """Splits a dimension into several, as a view."""
    def unfold(self, dimension: _b.int, size: Ints, step: Any) -> Tensor:
        """Returns all windows of a dimension, as a view with the window as an additional last dimension."""
    def unsafe_chunk(self, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns the parts that `chunk` returns, without a record that they share memory."""
    def unsafe_split(self, split_size: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns the parts that `split` returns, without a record that they share memory."""
    def unsafe_split_with_sizes(self, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
        """Returns the parts that `split_with_sizes` returns, without a record that they share memory."""
    def unsqueeze(self, dim: _b.int) -> Tensor:
        """Returns a view with an additional dimension of size 1."""
    def unsqueeze_(self, dim: _b.int) -> Self:
        """Gives the tensor the shape and strides of the view that `unsqueeze` returns."""
    @overload
    def view(self, dtype: DType, /) -> Tensor:
        """Returns a view with another shape, or the memory read as another dtype."""
    @overload
    def view(self, *size: Ints) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor:
        """Returns a view of the input with the shape of another tensor."""
    def vsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Splits the input along its first dimension."""
    def zero_(self) -> Self:
        """Sets all elements to zero."""
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

def _lazy_clone(input: Tensor) -> Tensor:
    """A clone whose storage shares the input's memory until one of the two is written, if the backend supports it and
    no other object writes there; else an ordinary clone.

    >>> x = torch.zeros(2)
    >>> y = x._lazy_clone()
    >>> y.add_(1), x
    (tensor([1., 1.]), tensor([0., 0.]))
    """

def adjoint(input: Tensor) -> Tensor:
    """Returns the conjugate transpose of the last two dimensions."""

def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `alias` returns.

    Example:
        >>> torch.alias_copy(torch.tensor([1, 2]))
        tensor([1, 2])
    """

def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
    """Returns a view of the input's memory with given sizes and strides."""

def as_strided_(input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None) -> Tensor:
    """Sets the tensor's sizes, strides and storage offset on its memory."""

def as_strided_copy(
    input: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Returns a copy of the view that `as_strided` returns."""

def as_strided_scatter(
    input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: _b.int | None = None
) -> Tensor:
    """Returns a copy of the input with another tensor in place of a strided view."""

@overload
def atleast_1d(tensor: Tensor, /) -> Tensor:
    """Returns tensors with at least one dimension, as views."""

@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor:
    """Returns tensors with at least two dimensions, as views; new dimensions come first."""

@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor:
    """Returns tensors with at least three dimensions, as views; a matrix gets the new one last."""

@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]: ...
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns a matrix with the given ones along its diagonal and zeros elsewhere."""

def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns views of the tensors broadcast to their common shape."""

def broadcast_to(input: Tensor, *size: Ints) -> Tensor:
    """Returns a view of the input broadcast to a shape."""

def cat(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenates tensors along an existing dimension."""

def chunk(input: Tensor, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns at most `chunks` parts of equal size, as views."""

def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Returns a copy of the tensor through which gradients flow."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along the second dimension; 1-d tensors are columns."""

def concat(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenates tensors along an existing dimension."""

def concatenate(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenates tensors along an existing dimension."""

def detach(input: Tensor) -> Tensor:
    """Returns a tensor on the same memory that autograd does not follow."""

def detach_(input: Tensor) -> Tensor:
    """Removes the tensor from the autograd graph in place."""

def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy, which requires a gradient if the input does; the op has no derivative.

    Example:
        >>> torch.detach_copy(torch.tensor([1.0]))
        tensor([1.])

    See also:
        `torch.detach`, whose result requires no gradient.
    """

def diag(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Returns the matrix with a 1-d tensor on a diagonal, or a diagonal of a matrix as a 1-d copy."""

def diag_embed(input: Tensor, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1) -> Tensor:
    """Returns matrices with the input's last dimension on a diagonal and zeros elsewhere."""

def diagflat(input: Tensor, offset: _b.int = 0) -> Tensor:
    """Returns the matrix with the flattened elements on a diagonal and zeros elsewhere."""

def diagonal(input: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
    """Returns the diagonals of matrices in two dimensions, as a view with the diagonal as the last dimension."""

def diagonal_copy(
    input: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1, *, out: Tensor | None = None
) -> Tensor:
    """Returns a copy of the view that `diagonal` returns."""

def diagonal_scatter(input: Tensor, src: Tensor, offset: _b.int = 0, dim1: _b.int = 0, dim2: _b.int = 1) -> Tensor:
    """Returns a copy of the input with another tensor in place of a diagonal."""

def dsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Splits the input along its third dimension."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along the third dimension."""

def equal(input: Tensor, other: Tensor) -> _b.bool:
    """Returns whether two tensors have the same shape and equal elements."""

def expand_copy(input: Tensor, size: Ints, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `expand` returns."""

def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Sets all elements to a value."""

def flatten(input: Tensor, start_dim: _b.int = 0, end_dim: _b.int = -1) -> Tensor:
    """Joins a range of dimensions to one."""

def flip(input: Tensor, *dims: Ints) -> Tensor:
    """Returns a copy with the elements in reverse order along dimensions."""

def fliplr(input: Tensor) -> Tensor:
    """Returns a copy with the second dimension in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """Returns a copy with the first dimension in reverse order."""

def gather(
    input: Tensor, dim: _b.int, index: Tensor, *, sparse_grad: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """Returns the elements at given indices along a dimension."""

def hsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Splits the input along its second dimension, or the only one of a 1-d tensor."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along the second dimension, or the only one of 1-d tensors."""

def index_add(
    input: Tensor, dim: _b.int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Returns the input with slices added at given indices along a dimension; repeated indices add up."""

def index_copy(input: Tensor, dim: _b.int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the input with slices replaced at given indices along a dimension."""

def index_fill(input: Tensor, dim: _b.int, index: Tensor, value: Tensor | Number) -> Tensor:
    """Returns the input with a value in the slices at given indices along a dimension."""

def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Tensor:
    """Returns the input with values at the positions of an indexing expression, as ``input[indices] = values``."""

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
    """Returns the input with slices reduced into those at given indices along a dimension."""

def index_select(input: Tensor, dim: _b.int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the slices at given indices along a dimension."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Returns the input with a value where a mask is true."""

def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Returns the input with the elements of another tensor, in order, where a mask is true."""

def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the elements where a mask is true, as a 1-d tensor."""

def moveaxis(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Returns a view with dimensions at other positions; the others keep their order."""

def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Returns a view with dimensions at other positions; the others keep their order."""

def narrow(input: Tensor, dim: _b.int, start: Number | Tensor, length: _b.int) -> Tensor:
    """Returns a view of a range of a dimension."""

def narrow_copy(
    input: Tensor, dim: _b.int, start: Number | Tensor, length: _b.int, *, out: Tensor | None = None
) -> Tensor:
    """Returns a copy of a range of a dimension."""

def permute(input: Tensor, *dims: Ints) -> Tensor:
    """Returns a view with the dimensions in another order."""

def permute_copy(input: Tensor, dims: Ints, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `permute` returns.

    Args:
        dims: The dimensions of the input in the order of the result.

    Example:
        >>> torch.permute_copy(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """

def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _b.bool = False) -> Tensor:
    """Returns the input with values at given indices of the flattened elements."""

def ravel(input: Tensor) -> Tensor:
    """Returns the elements as a 1-d tensor: a view where the strides allow it, else a copy.

    Example:
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])

    See also:
        `torch.flatten`.
    """

@overload
def repeat_interleave(repeats: Tensor, *, output_size: _b.int | None = None) -> Tensor:
    """Repeats each element, or each slice along a dimension, one after the other."""

@overload
def repeat_interleave(
    input: Tensor, repeats: Tensor | _b.int, dim: _b.int | None = None, *, output_size: _b.int | None = None
) -> Tensor: ...
def reshape(input: Tensor, *shape: Ints) -> Tensor:
    """Returns the elements in another shape."""

def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Changes the shape in place to that of another tensor."""

def roll(input: Tensor, shifts: Ints, dims: Ints = ...) -> Tensor:
    """Shifts the elements along dimensions; elements beyond the end come in at the start."""

def rot90(input: Tensor, k: _b.int = 1, dims: Ints = ...) -> Tensor:
    """Rotates the input by multiples of 90 degrees in a plane, from the first dimension towards the second."""

def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along the first dimension; 1-d tensors are rows."""

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
    """Returns the input with values at given indices along a dimension."""

def scatter_add(input: Tensor, dim: _b.int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the input with values added at given indices along a dimension; repeated indices add up."""

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
    """Returns the input with values reduced into given indices along a dimension."""

def select(input: Tensor, dim: _b.int, index: _b.int) -> Tensor:
    """Returns the slice at one index of a dimension, as a view without that dimension."""

def select_copy(input: Tensor, dim: _b.int, index: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `select` returns.

    Args:
        index: The index along `dim`.

    Example:
        >>> torch.select_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([3, 4])
    """

def select_scatter(input: Tensor, src: Tensor, dim: _b.int, index: _b.int) -> Tensor:
    """Returns a copy of the input with another tensor in place of the slice at one index."""

def slice_copy(
    input: Tensor,
    dim: _b.int = 0,
    start: Number | Tensor | None = None,
    end: Number | Tensor | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns a copy of the view that `slice` returns."""

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
    """Returns a copy of the input with another tensor in place of a slice."""

def split(
    input: Tensor, split_size_or_sections: Ints | None = None, dim: _b.int = 0, *, split_size: Ints | None = None
) -> tuple[Tensor, ...]:
    """Returns parts of equal or given sizes, as views."""

def split_copy(
    input: Tensor, split_size: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns copies of parts of equal or given sizes."""

def split_with_sizes(input: Tensor, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns consecutive parts of given sizes, as views."""

def split_with_sizes_copy(
    input: Tensor, split_sizes: Ints, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns copies of consecutive parts of given sizes."""

def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Returns a view without dimensions of size 1."""

def squeeze_copy(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `squeeze` returns.

    Args:
        dim: The dimension, or a tuple of them, to remove where its size is 1. Default: all dimensions.

    Example:
        >>> torch.squeeze_copy(torch.zeros(1, 2)).shape
        torch.Size([2])
    """

def stack(tensors: Sequence[Tensor], dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors of one shape along a new dimension."""

def swapaxes(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """Returns a view with two dimensions swapped."""

def swapdims(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """Returns a view with two dimensions swapped."""

def t(input: Tensor) -> Tensor:
    """Returns the transpose of a matrix, as a view; a tensor of fewer dimensions itself."""

def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `t` returns.

    Example:
        >>> torch.t_copy(torch.tensor([[1, 2]]))
        tensor([[1],
                [2]])
    """

def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns the elements of the flattened input at given indices."""

def take_along_dim(input: Tensor, indices: Tensor, dim: _b.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns the elements at given indices along a dimension."""

def tensor_split(
    input: Tensor,
    indices_or_sections: Ints | Tensor | None = None,
    dim: _b.int = 0,
    *,
    indices: Sequence[_b.int] | None = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:
    """Returns parts by their number or by indices, as views."""

def tile(input: Tensor, *dims: Ints) -> Tensor:
    """Repeats the tensor along each dimension; missing counts are 1 and come first."""

def trace(input: Tensor) -> Tensor:
    """Returns the sum of a matrix's main diagonal.

    Raises:
        RuntimeError: The input does not have two dimensions.

    Example:
        >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """

def transpose(input: Tensor, dim0: _b.int, dim1: _b.int) -> Tensor:
    """Returns a view with two dimensions swapped."""

def transpose_copy(input: Tensor, dim0: _b.int, dim1: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `transpose` returns."""

def tril(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Returns the lower triangles of matrices in the last two dimensions, with zeros above them."""

def triu(input: Tensor, diagonal: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """Returns the upper triangles of matrices in the last two dimensions, with zeros below them."""

def unbind(input: Tensor, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns the slices along a dimension, as views without that dimension."""

def unbind_copy(input: Tensor, dim: _b.int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Returns copies of the slices along a dimension."""

def unflatten(input: Tensor, dim: _b.int, sizes: Sequence[_b.int]) -> Tensor:
    """Splits a dimension into several, as a view."""

def unfold_copy(input: Tensor, dimension: _b.int, size: Ints, step: Any, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `unfold` returns."""

def unravel_index(indices: Tensor, shape: Ints) -> Tensor:
    """Converts flat indices to coordinates."""

def unsafe_chunk(input: Tensor, chunks: _b.int, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns the parts that `chunk` returns, without a record that they share memory."""

def unsafe_split(input: Tensor, split_size: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns the parts that `split` returns, without a record that they share memory."""

def unsafe_split_with_sizes(input: Tensor, split_sizes: Ints, dim: _b.int = 0) -> tuple[Tensor, ...]:
    """Returns the parts that `split_with_sizes` returns, without a record that they share memory."""

def unsqueeze(input: Tensor, dim: _b.int) -> Tensor:
    """Returns a view with an additional dimension of size 1."""

def unsqueeze_copy(input: Tensor, dim: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `unsqueeze` returns.

    Args:
        dim: The position of the new dimension.

    Example:
        >>> torch.unsqueeze_copy(torch.tensor([1, 2]), 0)
        tensor([[1, 2]])
    """

def view_as_complex(input: Tensor) -> Tensor:
    """Returns a complex view of a real tensor whose last dimension has the real and the imaginary part."""

def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `view_as_complex` returns.

    Example:
        >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))
        tensor([1.+2.j])
    """

def view_as_real(input: Tensor) -> Tensor:
    """Returns a real view of a complex tensor: the last dimension has the real and the imaginary part.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])

    See also:
        `torch.view_as_complex`.
    """

def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `view_as_real` returns.

    Example:
        >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])
    """

def view_copy(input: Tensor, size: Ints, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of the view that `view` returns."""

def vsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
    """Splits the input along its first dimension."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along the first dimension; 1-d tensors are rows."""

def zero_(input: Tensor) -> Tensor:
    """Sets all elements to zero."""

def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _b.bool = False) -> Tensor:
    """In-place version of `index_put`: writes the result into the tensor and returns it."""
