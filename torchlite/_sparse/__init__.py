"""Sparse tensors: their data, their class, and the table of what ops do with them. The core asks for these by name
(`SLOTS.sparse`); `torch.sparse` and the functions of `torch` stand on them.
"""

from .backward import backward_with
from .build import (
    CHECKS,
    coo_to_csr_indices,
    csr_to_coo_indices,
    empty,
    rebuilt,
    spdiags,
    validate,
    validate_compressed_args,
    validate_coo_args,
)
from .checking import over_values
from .convert import dense_of, distinct, like, moved, sparse_mask, to_compressed, to_dense, to_sparse, values_at
from .data import SparseData, contents, is_sparse, made, no_kernel
from .looking_up import looked_up
from .parts import (
    coalesce,
    coalesced_,
    indices,
    is_coalesced,
    nnz,
    part,
    raw_dim,
    raw_indices,
    raw_values,
    resize_,
    values,
)
from .printing import text_of
from .products import smm, sspaddmm
from .rules import run, run_in_place, write_out
from .shape import selected

__all__ = [
    "CHECKS",
    "SparseData",
    "backward_with",
    "coalesce",
    "coalesced_",
    "contents",
    "coo_to_csr_indices",
    "csr_to_coo_indices",
    "dense_of",
    "distinct",
    "empty",
    "indices",
    "is_coalesced",
    "is_sparse",
    "like",
    "looked_up",
    "made",
    "moved",
    "nnz",
    "no_kernel",
    "over_values",
    "part",
    "raw_dim",
    "raw_indices",
    "raw_values",
    "rebuilt",
    "resize_",
    "run",
    "run_in_place",
    "selected",
    "smm",
    "sparse_mask",
    "spdiags",
    "sspaddmm",
    "text_of",
    "to_compressed",
    "to_dense",
    "to_sparse",
    "validate",
    "validate_compressed_args",
    "validate_coo_args",
    "values",
    "values_at",
    "write_out",
]
