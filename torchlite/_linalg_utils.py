"""Products of possibly sparse matrices, under the name of PyTorch's module."""

from ._sparse.matrix_products import basis, bform, matmul, qform, symeig

__all__ = ["basis", "bform", "matmul", "qform", "symeig"]
