"""Sparse tensors: the data, the class, and the rules of ops on them. The core reaches this package through
`SLOTS.sparse`; `torch.sparse` and the functions of `torch` call it.
"""

from .accessors import (
    coalesce,
    compressed_part,
    indices,
    is_coalesced,
    nnz,
    raw_dim,
    raw_indices,
    raw_values,
    resize_,
    set_coalesced_,
    values,
)
from .backward_pass import sparse_backward_mode
from .constructors import (
    INVARIANT_CHECKS,
    coo_to_csr_indices,
    csr_to_coo_indices,
    empty,
    rebuild,
    spdiags,
    validate,
    validate_compressed_args,
    validate_coo_args,
)
from .gradcheck import as_dense_function
from .layout_conversion import (
    densify,
    sparse_mask,
    sparse_to,
    to_compressed,
    to_dense,
    to_layout_of,
    to_sparse,
    unique_indices,
    values_at,
)
from .matmul_ops import smm, sspaddmm
from .op_dispatch import move, run_in_place, run_op, write_out
from .printing import sparse_repr
from .shape_ops import getitem
from .sparse_grad_ops import lookup_with_sparse_grad
from .sparse_tensor import SparseData, is_sparse, no_kernel_error, pickle_parts, wrap_sparse
