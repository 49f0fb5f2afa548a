"""Methods and properties of sparse layouts on Tensor. They are implemented in `torchlite._sparse`, imported at first
use.
"""

from __future__ import annotations

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.parsed_functions import parsed
from .conversions import ConversionMethods


class SparseMethods(ConversionMethods):
    """The part of Tensor that is about sparse layouts; errors of dense tensors are PyTorch's."""

    __slots__ = ()
    _tl_is_sparse = False
    _tl_rules: str | None = None

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Returns a dense tensor: itself if it is dense.

        Args:
            dtype: The dtype of the result. Default: this tensor's.
            masked_grad: Whether the gradient is limited to the elements that the sparse tensor has. Default: ``True``.
        """
        if not self._tl_is_sparse:
            return self if dtype is None else self.to(dtype)
        return CALLBACKS.sparse("to_dense")(self, dtype, masked_grad=masked_grad)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """Returns the tensor in a sparse layout.

        Args:
            sparse_dim: The number of sparse dimensions of the COO layout. Default: all.
            layout: The layout. Default: `torch.sparse_coo`.
            blocksize: The sizes of a block, two integers, for layouts with blocks.
            dense_dim: The number of dense dimensions. Default: 0.

        Raises:
            RuntimeError: The conversion is not supported.

        Example:
            >>> torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
            tensor(indices=tensor([[0],
                                   [1]]),
                   values=tensor([2.]),
                   size=(2, 2), nnz=1, layout=torch.sparse_coo)
        """
        return CALLBACKS.sparse("to_sparse")(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)

    def to_sparse_coo(self):
        """The tensor in the COO layout."""
        return CALLBACKS.sparse("to_sparse")(self)

    def to_sparse_csr(self, dense_dim=None):
        """Returns the tensor in the CSR layout: compressed rows.

        Args:
            dense_dim: The number of dense dimensions. Default: 0.
        """
        return CALLBACKS.sparse("to_compressed")(self, "sparse_csr", None, dense_dim)

    def to_sparse_csc(self, dense_dim=None):
        """Returns the tensor in the CSC layout: compressed columns.

        Args:
            dense_dim: The number of dense dimensions. Default: 0.
        """
        return CALLBACKS.sparse("to_compressed")(self, "sparse_csc", None, dense_dim)

    def to_sparse_bsr(self, blocksize, dense_dim=None):
        """Returns the tensor in the BSR layout: compressed rows of blocks.

        Args:
            blocksize: The sizes of a block, two integers.
            dense_dim: The number of dense dimensions. Default: 0.
        """
        return CALLBACKS.sparse("to_compressed")(self, "sparse_bsr", blocksize, dense_dim)

    def to_sparse_bsc(self, blocksize, dense_dim=None):
        """Returns the tensor in the BSC layout: compressed columns of blocks.

        Args:
            blocksize: The sizes of a block, two integers.
            dense_dim: The number of dense dimensions. Default: 0.
        """
        return CALLBACKS.sparse("to_compressed")(self, "sparse_bsc", blocksize, dense_dim)

    def sparse_mask(self, mask):
        """Returns the elements at the indices of a sparse tensor, as a sparse tensor.

        Args:
            mask: The sparse tensor.
        """
        return CALLBACKS.sparse("sparse_mask")(self, mask)

    def coalesce(self):
        """A COO tensor with sorted, unique indices; values at the same index are summed."""
        return CALLBACKS.sparse("coalesce")(self)

    def is_coalesced(self) -> bool:
        """True if a COO tensor is marked as having sorted, unique indices."""
        return CALLBACKS.sparse("is_coalesced")(self)

    def _coalesced_(self, coalesced):
        return CALLBACKS.sparse("set_coalesced_")(self, coalesced)

    def indices(self):
        """The indices of a coalesced COO tensor, (sparse_dim, nnz)."""
        return CALLBACKS.sparse("indices")(self)

    def values(self):
        """The specified elements of a sparse tensor; RuntimeError for COO that is not coalesced."""
        return CALLBACKS.sparse("values")(self)

    def _indices(self):
        return CALLBACKS.sparse("raw_indices")(self)

    def _values(self):
        return CALLBACKS.sparse("raw_values")(self)

    def _nnz(self) -> int:
        return CALLBACKS.sparse("nnz")(self)

    def crow_indices(self):
        """Index of each row's first element in a CSR or BSR tensor."""
        return CALLBACKS.sparse("compressed_part")(self, "crow_indices")

    def col_indices(self):
        """The columns of the elements of a CSR or BSR tensor."""
        return CALLBACKS.sparse("compressed_part")(self, "col_indices")

    def ccol_indices(self):
        """Index of each column's first element in a CSC or BSC tensor."""
        return CALLBACKS.sparse("compressed_part")(self, "ccol_indices")

    def row_indices(self):
        """The rows of the elements of a CSC or BSC tensor."""
        return CALLBACKS.sparse("compressed_part")(self, "row_indices")

    def sparse_dim(self) -> int:
        """Number of sparse dimensions; 0 for a dense tensor."""
        return self._tl_array.sparse_dim if self._tl_is_sparse else 0

    def dense_dim(self) -> int:
        """Number of dense dimensions: those of each value."""
        return self._tl_array.dense_dim if self._tl_is_sparse else self._tl_array.ndim

    def _dimI(self) -> int:
        return CALLBACKS.sparse("raw_dim")(self, "_dimI")

    def _dimV(self) -> int:
        return CALLBACKS.sparse("raw_dim")(self, "_dimV")

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Resizes a COO tensor in place. The elements stay, so no size may shrink.

        Args:
            size: The new sizes.
            sparse_dim: The number of sparse dimensions.
            dense_dim: The number of dense dimensions.
        """
        return CALLBACKS.sparse("resize_")(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Resizes a COO tensor in place and removes its elements.

        Args:
            size: The new sizes.
            sparse_dim: The number of sparse dimensions.
            dense_dim: The number of dense dimensions.
        """
        return CALLBACKS.sparse("resize_")(self, size, sparse_dim, dense_dim, clear=True)

    def resize_as_sparse_(self, the_template):
        """Resizes a COO tensor to the size and numbers of dimensions of another.

        Args:
            the_template: The other tensor.
        """
        sizes = the_template.shape, the_template.sparse_dim(), the_template.dense_dim()
        return CALLBACKS.sparse("resize_")(self, *sizes)

    @parsed("Tensor.smm")
    def smm(self, mat2):
        """Returns the product of a sparse matrix and a dense one, as a sparse matrix.

        Args:
            mat2: The dense matrix.
        """
        return CALLBACKS.sparse("smm")(self, mat2)

    @parsed("Tensor.sspaddmm")
    def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
        """Computes ``beta * self + alpha * mat1 @ mat2``; all are sparse but `mat2`.

        Args:
            mat1: The sparse matrix.
            mat2: The dense matrix.
            beta: The factor of this tensor. Default: 1.
            alpha: The factor of the product. Default: 1.
        """
        return CALLBACKS.sparse("sspaddmm")(self, mat1, mat2, beta=beta, alpha=alpha)

    # Older names of the conversions.
    _to_sparse = to_sparse
    _to_sparse_csr, _to_sparse_csc = to_sparse_csr, to_sparse_csc
    _to_sparse_bsr, _to_sparse_bsc = to_sparse_bsr, to_sparse_bsc
