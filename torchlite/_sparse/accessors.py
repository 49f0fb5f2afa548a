"""Accessor methods of sparse tensors: indices, values, sizes."""

from __future__ import annotations

import torchlite as torch

from .._dispatch.autograd_graph import bump_version
from .differentiable_values import values_of
from .layout_conversion import coalesce_coo
from .sparse_tensor import COMPRESSED, LAYOUT_NAMES, ROW_COMPRESSED, SparseData, no_kernel_error


def _check_coo(tensor, name: str) -> SparseData:
    if tensor.layout is not torch.sparse_coo:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {LAYOUT_NAMES[tensor.layout]}")
    return tensor._tl_array


def coalesce(tensor):
    """`Tensor.coalesce`."""
    _check_coo(tensor, "coalesce")
    return coalesce_coo(tensor)


def is_coalesced(tensor) -> bool:
    """`Tensor.is_coalesced`."""
    return _check_coo(tensor, "is_coalesced").coalesced


def set_coalesced_(tensor, coalesced: bool):
    """Set whether a COO tensor is coalesced."""
    data = _check_coo(tensor, "_coalesced_")
    tensor._tl_array = SparseData(data.layout, data.shape, data.parts, data.values, bool(coalesced))
    return tensor


def _check_coalesced(data: SparseData, name: str) -> None:
    if not data.coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def indices(tensor):
    """`Tensor.indices`."""
    data = _check_coo(tensor, "indices")
    _check_coalesced(data, "indices")
    return data.parts[0].detach()


def values(tensor):
    """`Tensor.values`."""
    if not tensor._tl_is_sparse:
        raise RuntimeError(f"values expected sparse tensor layout but got {LAYOUT_NAMES[tensor.layout]}")
    if tensor.layout is torch.sparse_coo:
        _check_coalesced(tensor._tl_array, "values")
    return values_of(tensor)


def raw_indices(tensor):
    """`Tensor._indices`."""
    if tensor.layout is not torch.sparse_coo:
        raise no_kernel_error("_indices", tensor)
    return tensor._tl_array.parts[0].detach()


def raw_values(tensor):
    """`Tensor._values`: without history."""
    if tensor.layout is not torch.sparse_coo:
        raise no_kernel_error("_values", tensor)
    return tensor._tl_array.values.detach()


def nnz(tensor) -> int:
    """Return the number of specified elements, or of blocks."""
    if not tensor._tl_is_sparse:
        raise no_kernel_error("_nnz", tensor)
    return tensor._tl_array.nnz


def raw_dim(tensor, name: str) -> int:
    """`_dimI` and `_dimV`."""
    if tensor.layout is not torch.sparse_coo:
        raise no_kernel_error(name, tensor)
    return tensor._tl_array.sparse_dim if name == "_dimI" else tensor._tl_array.dense_dim


def compressed_part(tensor, name: str):
    """The compressed or plain indices of a compressed tensor."""
    rows = name in ("crow_indices", "col_indices")
    if tensor.layout not in COMPRESSED or (tensor.layout in ROW_COMPRESSED) is not rows:
        what = "row" if rows else "column"
        raise RuntimeError(
            f"{name} expected sparse {what} compressed tensor layout but got {LAYOUT_NAMES[tensor.layout]}"
        )
    return tensor._tl_array.parts[0 if name[0] == "c" and name[1] in "rc" else 1].detach()


def resize_as_(tensor, other):
    """`resize_as_`: the other's size and numbers of dimensions."""
    if tensor.layout is not torch.sparse_coo and tensor.layout is other.layout and tensor.shape == other.shape:
        return tensor
    return resize_(tensor, other.shape, other.sparse_dim(), other.dense_dim())


def resize_(tensor, size, sparse_dim: int, dense_dim: int, clear: bool = False):
    """`sparse_resize_`, and with `clear` `sparse_resize_and_clear_`."""
    if tensor.layout is not torch.sparse_coo:
        raise no_kernel_error("sparse_resize_and_clear_" if clear else "sparse_resize_", tensor)
    size, data = tuple(size), tensor._tl_array
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    index, values = data.parts[0], data.values
    if clear or not data.nnz:
        index = index.new_zeros((sparse_dim, 0))
        values = values.new_zeros((0, *size[sparse_dim:]))
        coalesced = True
    else:
        _check_resize(data, size, sparse_dim, dense_dim)
        coalesced = data.coalesced
        for dim, length in enumerate(size[sparse_dim:], 1):
            if length > values.shape[dim]:
                more = (*values.shape[:dim], length - values.shape[dim], *values.shape[dim + 1 :])
                values = torch.cat([values, values.new_zeros(more)], dim)
    tensor._tl_array = SparseData(data.layout, size, (index,), values, coalesced)
    bump_version(tensor)
    return tensor


_OPTIONS = (
    "You could try the following options:\n1. If you need an empty sparse tensor of this size, call `x = "
    "torch.sparse_coo_tensor(size)`.\n2. If you need to resize this tensor, you have the following options:\n    1. "
    "For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and "
    "then try the same call again.\n    2. Or, create a new sparse tensor with the correct indices and values from "
    "this sparse tensor."
)


def _check_resize(data: SparseData, size: tuple, sparse_dim: int, dense_dim: int) -> None:
    for what, have, want in (("sparse", data.sparse_dim, sparse_dim), ("dense", data.dense_dim, dense_dim)):
        if have != want:
            raise RuntimeError(
                f"changing the number of {what} dimensions (from {have} to {want}) on a non-empty sparse tensor is not "
                f"supported.\n{_OPTIONS}"
            )
    cut = data.sparse_dim
    for what, before, after in (("sparse", data.shape[:cut], size[:cut]), ("dense", data.shape[cut:], size[cut:])):
        if any(a < b for a, b in zip(after, before, strict=True)):
            raise RuntimeError(
                f"shrinking the size of {what} dimensions (from {list(before)} to {list(after)}) on a non-empty sparse "
                f"tensor is not supported.\n{_OPTIONS}"
            )
