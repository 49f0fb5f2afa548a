"""The functions of `torch` that make sparse tensors or multiply them."""

from __future__ import annotations

import functools

import torchlite as torch

from .build import (
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
from .products import hspmm, smm, sparse_mm, sspaddmm
from .reduce import softmax, sparse_sum

for _function in (sparse_coo_tensor, sparse_compressed_tensor, hspmm, smm, sspaddmm):
    _function.__module__ = "torchlite"


def _unsafe(build):
    """The constructor, which checks nothing."""
    return functools.partial(build, check_invariants=False)


_sparse_coo_tensor_unsafe = _unsafe(sparse_coo_tensor)
_sparse_csr_tensor_unsafe = _unsafe(sparse_csr_tensor)
_sparse_csc_tensor_unsafe = _unsafe(sparse_csc_tensor)
_sparse_bsr_tensor_unsafe = _unsafe(sparse_bsr_tensor)
_sparse_bsc_tensor_unsafe = _unsafe(sparse_bsc_tensor)
_sparse_compressed_tensor_unsafe = _unsafe(sparse_compressed_tensor)

_validate_sparse_coo_tensor_args = validate_coo_args
_validate_sparse_csr_tensor_args = functools.partial(validate_compressed_args, torch.sparse_csr)
_validate_sparse_csc_tensor_args = functools.partial(validate_compressed_args, torch.sparse_csc)
_validate_sparse_bsr_tensor_args = functools.partial(validate_compressed_args, torch.sparse_bsr)
_validate_sparse_bsc_tensor_args = functools.partial(validate_compressed_args, torch.sparse_bsc)


def _validate_sparse_compressed_tensor_args(first, second, values, size, layout, check_pinning=None):
    validate_compressed_args(layout, first, second, values, size)


_convert_indices_from_coo_to_csr = coo_to_csr_indices
_convert_indices_from_csr_to_coo = csr_to_coo_indices
spmm = dsmm = hsmm = torch.mm
_sparse_mm, _sparse_sum, _sparse_softmax = sparse_mm, sparse_sum, softmax
_sparse_log_softmax = functools.partial(softmax, log=True)


def saddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """`beta * input + alpha * mat1 @ mat2`, sparse."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def resize_as_sparse_(input, the_template):
    """Give a COO tensor the size and numbers of dimensions of another."""
    return input.resize_as_sparse_(the_template)


def _coalesce(input):
    return input.coalesce()
