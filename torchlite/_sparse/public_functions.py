"""The functions of `torch` that create or multiply sparse tensors."""

import functools

import torchlite as torch

from .._dispatch.parsed_functions import parsed
from .._types.package_name import package_name
from .constructors import (
    coo_to_csr_indices,
    csr_to_coo_indices,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    validate_compressed_args,
    validate_coo_args,
)
from .matmul_ops import hspmm, smm, sspaddmm

for _function in (
    sparse_coo_tensor, sparse_compressed_tensor, sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor,
    sparse_bsc_tensor, hspmm, smm, sspaddmm,
):  # fmt: skip
    _function.__module__ = package_name()


_validate_sparse_coo_tensor_args = validate_coo_args
_validate_sparse_csr_tensor_args = functools.partial(validate_compressed_args, torch.sparse_csr)
_validate_sparse_csc_tensor_args = functools.partial(validate_compressed_args, torch.sparse_csc)
_validate_sparse_bsr_tensor_args = functools.partial(validate_compressed_args, torch.sparse_bsr)
_validate_sparse_bsc_tensor_args = functools.partial(validate_compressed_args, torch.sparse_bsc)


def _validate_sparse_compressed_tensor_args(first, second, values, size, layout, check_pinning=None):
    validate_compressed_args(layout, first, second, values, size)


_convert_indices_from_coo_to_csr = coo_to_csr_indices
_convert_indices_from_csr_to_coo = csr_to_coo_indices
spmm = dsmm = torch.mm
hsmm = hspmm


@parsed("sspaddmm")
def saddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """`beta * input + alpha * mat1 @ mat2`, sparse."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


@parsed("resize_as_sparse_")
def resize_as_sparse_(input, the_template):
    """Resize a COO tensor to the size and the sparse and dense dimensions of another."""
    return input.resize_as_sparse_(the_template)
