"""SciPy's sparse matrices and arrays as sparse Tensors of the same layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch.public_functions import torch
from .._tensor.creation import as_tensor, is_scipy_sparse
from .._types.dtypes import promote_types
from .._types.layouts import sparse_bsr, sparse_csc, sparse_csr
from .constructors import sparse_compressed_tensor, sparse_coo_tensor

_COMPRESSED = {"csr": sparse_csr, "csc": sparse_csc, "bsr": sparse_bsr}


def from_scipy_sparse(matrix: Any) -> Any:
    """Convert a SciPy sparse matrix to a Tensor of its layout, which shares the memory of the values. Matrices with
    unsorted or repeated indices in CSR, CSC and BSR are copied, because torch's layouts have neither. The formats DIA,
    DOK and LIL become COO.

    Args:
        matrix: a matrix or an array of `scipy.sparse`; CSR arrays of one dimension become COO.

    Returns:
        A CPU tensor with the matrix' shape and dtype, of the layout `sparse_csr`, `sparse_csc`, `sparse_bsr` or
        `sparse_coo`.

    Raises:
        TypeError: torch has no dtype of the values.
    """
    shape = tuple(map(int, matrix.shape))
    if matrix.format in _COMPRESSED and len(shape) == 2:
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        parts = (as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return sparse_compressed_tensor(*parts, shape, layout=_COMPRESSED[matrix.format])
    coo = matrix.tocoo()
    coordinates = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    indices = np.stack([np.asarray(c, np.int64) for c in coordinates])
    return sparse_coo_tensor(as_tensor(indices), as_tensor(coo.data), shape)


def matmul(tensor: Any, other: Any) -> Any:
    """`tensor @ other` for an operand that the op does not take.

    The product with a SciPy sparse matrix or an array is a differentiable Tensor; with an array its dtype is the common
    one, as for `*`. For other objects the result is NotImplemented, and Python asks the object's class.
    """
    if isinstance(other, np.ndarray):
        array = as_tensor(other).to(tensor.device)
        common = promote_types(tensor.dtype, array.dtype)
        return torch.matmul(tensor.to(common), array.to(common))
    if not is_scipy_sparse(other):
        return NotImplemented
    return torch.matmul(tensor, from_scipy_sparse(other).to(tensor.device))
