"""Shape ops of sparse tensors: indexing, splitting, concatenation, permutation."""

from __future__ import annotations

import torchlite as torch

from .._dispatch.shapes import wrap_dim
from ..autograd.function import Function
from .differentiable_values import values_of, with_node_name, with_values
from .layout_conversion import coalesce_coo, concat_ranges, sum_by_index, to_coo
from .sparse_tensor import BLOCK_LAYOUTS, SparseData, _raise_no_strides, is_sparse, no_kernel_error, wrap_sparse


def _make_coo(shape, index, values, name: str, coalesced: bool = False):
    """Return a COO tensor, coalesced if it has fewer than two elements."""
    coalesced = coalesced or index.shape[1] < 2
    return with_values(SparseData(torch.sparse_coo, shape, (index,), values, coalesced), values, name)


def _require_coo(tensor) -> None:
    if tensor.layout is not torch.sparse_coo:
        _raise_no_strides(tensor)


# -- dimensions in another order --------------------------------------------------------

_TRANSPOSED_LAYOUT = {
    torch.sparse_csr: torch.sparse_csc, torch.sparse_csc: torch.sparse_csr, torch.sparse_bsr: torch.sparse_bsc,
    torch.sparse_bsc: torch.sparse_bsr,
}  # fmt: skip


class _Permute(Function):
    """Permute dimensions; the gradient passes through, sparse or dense."""

    @staticmethod
    def forward(ctx, tensor, order):
        ctx.order = order
        data = tensor._tl_array
        cut = data.sparse_dim
        index = data.parts[0].index_select(0, torch.tensor(order[:cut], dtype=torch.int64, device=tensor.device))
        values = data.values.permute(0, *(dim - cut + 1 for dim in order[cut:]))
        kept = data.nnz < 2 or data.coalesced and order[:cut] == list(range(cut))
        shape = [data.shape[dim] for dim in order]
        return wrap_sparse(SparseData(torch.sparse_coo, shape, (index,), values, kept))

    @staticmethod
    def backward(ctx, g):
        return torch.permute(g, sorted(range(len(ctx.order)), key=ctx.order.__getitem__)), None


class _TransposeCompressed(Function):
    """Transpose a compressed tensor: compressed rows become compressed columns."""

    @staticmethod
    def forward(ctx, tensor):
        data = tensor._tl_array
        b, values = data.batch, data.values
        ctx.dims = b, b + 1
        values = values.transpose(b + 1, b + 2) if data.layout in BLOCK_LAYOUTS else values
        shape = [*data.shape[:b], data.shape[b + 1], data.shape[b]]
        return wrap_sparse(SparseData(_TRANSPOSED_LAYOUT[data.layout], shape, data.parts, values))

    @staticmethod
    def backward(ctx, g):
        return torch.transpose(g, *ctx.dims)


def permute(input, dims, name: str = "Permute"):
    """Permute the sparse dimensions among themselves, and the dense ones."""
    data = input._tl_array
    if len(dims) != data.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {data.ndim} is not equal to len(dims) = {len(dims)}"
        )
    if data.layout is not torch.sparse_coo:
        raise no_kernel_error("permute", input)
    order = [wrap_dim(dim, data.ndim) for dim in dims]
    if sorted(order) != list(range(data.ndim)):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    cut = data.sparse_dim
    if any(dim >= cut for dim in order[:cut]):
        raise RuntimeError(
            "transpose(): transposing a sparse dimension and a dense dimension is not supported"
            if name.startswith("T")
            else "permute(sparse_coo): mixing of sparse and dense dimensions is not supported"
        )
    return with_node_name(_Permute, f"{name}Backward0").apply(input, order)


def transpose(input, dim0, dim1, name: str = "Transpose"):
    """Swap two dimensions; a matrix compressed by rows is then compressed by columns."""
    data = input._tl_array
    dim0, dim1 = wrap_dim(dim0, data.ndim), wrap_dim(dim1, data.ndim)
    if data.layout is not torch.sparse_coo and data.dense_dim:
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    if dim0 == dim1 and data.layout is not torch.sparse_coo:
        return input
    order = list(range(data.ndim))
    order[dim0], order[dim1] = dim1, dim0
    if data.layout is torch.sparse_coo:
        return permute(input, order, name)
    b = data.batch
    if {dim0, dim1} != {b, b + 1}:
        raise RuntimeError(
            "transpose(): can only transpose the rows and columns of compressed sparse tensors, but got dimensions "
            f"{dim0} and {dim1}"
        )
    return with_node_name(_TransposeCompressed, f"{name}Backward0").apply(input)


def t(input):
    """`Tensor.t`."""
    if input.ndim < 2:
        return input
    if input.ndim > 2:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{input._tl_array.sparse_dim} sparse and {input._tl_array.dense_dim} dense dimensions"
        )
    return transpose(input, 0, 1, "T")


# -- parts ------------------------------------------------------------------------------


def select(input, dim, index):
    """Select an index along a dimension; the result is dense if no sparse dimension remains."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = wrap_dim(dim, input.ndim), int(index)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    index = index % size
    if dim < input._tl_array.batch:
        data, values = input._tl_array, values_of(input).select(dim, index)
        parts = tuple(part.select(dim, index) for part in data.parts)
        shape = data.shape[:dim] + data.shape[dim + 1 :]
        return with_values(SparseData(data.layout, shape, parts, values), values, "SelectBackward0")
    tensor = to_coo(input)
    data, values = tensor._tl_array, values_of(tensor)
    cut, shape = data.sparse_dim, data.shape[:dim] + data.shape[dim + 1 :]
    if dim >= cut:
        values = values.select(dim - cut + 1, index)
        return _make_coo(shape, data.parts[0], values, "SelectBackward0")
    kept = (data.parts[0][dim] == index).nonzero().reshape(-1)
    values = values.index_select(0, kept)
    if cut == 1:
        return sum_by_index(values, 1, torch.zeros_like(kept))[0]
    rows = [d for d in range(cut) if d != dim]
    where = data.parts[0].index_select(1, kept)
    where = where.index_select(0, torch.tensor(rows, device=where.device))
    return _make_coo(shape, where, values, "SelectBackward0")


def getitem(tensor, key):
    """`tensor[key]`, for integers, None and an ellipsis."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        named = sum(k is not None for k in keys) - 1
        keys[at : at + 1] = [slice(None)] * (tensor.ndim - named)
    dim = 0
    for k in keys:
        if isinstance(k, slice) and k == slice(None):
            dim += 1
        elif k is None:
            tensor, dim = torch.unsqueeze(tensor, dim), dim + 1
        elif isinstance(k, int) and not isinstance(k, bool) or isinstance(k, torch.Tensor) and not k.ndim and (
            not is_sparse(k) and k.dtype in (torch.int64, torch.int32)
        ):  # fmt: skip
            tensor = torch.select(tensor, dim, int(k))
        elif isinstance(k, slice):
            _require_coo(tensor)
            raise no_kernel_error("as_strided", tensor)
        else:
            raise no_kernel_error("index.Tensor", tensor)
    return tensor


def unbind(input, dim=0):
    """All entries along a dimension."""
    return tuple(select(input, dim, i) for i in range(input.shape[wrap_dim(dim, input.ndim)]))


class _Unsqueeze(Function):
    """Insert a dimension; the gradient passes through, sparse or dense."""

    @staticmethod
    def forward(ctx, tensor, dim):
        ctx.dim = dim
        data, values = tensor._tl_array, tensor._tl_array.values
        shape, index, cut = [*data.shape[:dim], 1, *data.shape[dim:]], data.parts[0], data.sparse_dim
        if dim <= cut:
            index = torch.cat([index[:dim], index.new_zeros((1, index.shape[1])), index[dim:]])
        else:
            values = values.unsqueeze(dim - cut + 1)
        return wrap_sparse(SparseData(torch.sparse_coo, shape, (index,), values, data.nnz < 2))

    @staticmethod
    def backward(ctx, g):
        return torch.select(g, ctx.dim, 0), None


_Unsqueeze._backward_cls.__name__ = "UnsqueezeBackward0"


def unsqueeze(input, dim):
    """Insert a dimension of size one."""
    _require_coo(input)
    return _Unsqueeze.apply(input, wrap_dim(dim, input.ndim + 1))


def squeeze(input, dim=None):
    """Raise PyTorch's error: `squeeze` is a view, which sparse tensors do not support."""
    raise no_kernel_error("as_strided", input)


def narrow_copy(input, dim, start, length):
    """Return a copy of a range of entries along a dimension."""
    _require_coo(input)
    data, values = input._tl_array, values_of(input)
    dim = wrap_dim(dim, data.ndim)
    size, cut = data.shape[dim], data.sparse_dim
    start = int(start)
    start = start + size if start < 0 else start
    if length < 0 or start + length > size:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) = range({start}, {start + length})")
    shape, index, name = [*data.shape[:dim], length, *data.shape[dim + 1 :]], data.parts[0], "NarrowCopyBackward0"
    if dim >= cut:
        return _make_coo(shape, index, values.narrow(dim - cut + 1, start, length), name, data.coalesced)
    kept = ((index[dim] >= start) & (index[dim] < start + length)).nonzero().reshape(-1)
    shift = torch.zeros(cut, 1, dtype=torch.int64, device=index.device)
    shift[dim] = start
    index = index.index_select(1, kept) - shift
    return _make_coo(shape, index, values.index_select(0, kept), name, data.coalesced)


def index_select(input, dim, index):
    """The entries along a dimension that `index` names, in that order."""
    if input.layout is not torch.sparse_coo:
        raise no_kernel_error("index_select", input)
    data, values = input._tl_array, values_of(input)
    dim = wrap_dim(dim, data.ndim)
    if index.ndim > 1 or index.dtype not in (torch.int64, torch.int32):
        raise RuntimeError("index_select() argument index must be 1-D long-tensor.")
    index = index.reshape(-1).to(torch.int64)
    size, cut, count = data.shape[dim], data.sparse_dim, index.shape[0]
    bad = ((index < -size) | (index >= size)).nonzero()
    if bad.shape[0]:
        found = int(index[bad[0, 0]])
        raise IndexError(
            f"index_select(): index contains {found} that is out of range for tensor of size {list(data.shape)} at "
            f"dimension {dim}"
        )
    index = torch.where(index < 0, index + size, index)
    shape, name = [*data.shape[:dim], count, *data.shape[dim + 1 :]], "IndexSelectBackward0"
    if dim >= cut:
        return _make_coo(shape, data.parts[0], values.index_select(dim - cut + 1, index), name, data.coalesced)
    # Each element appears wherever the index contains its row.
    ordered, order = torch.sort(index, stable=True)
    row = data.parts[0][dim].contiguous()
    first = torch.searchsorted(ordered, row)
    which, place = concat_ranges(first, torch.searchsorted(ordered, row, right=True) - first)
    place = order.index_select(0, place)
    where = data.parts[0].index_select(1, which)
    where = torch.cat([where[:dim], place.unsqueeze(0), where[dim + 1 :]])
    out = _make_coo(shape, where, values.index_select(0, which), name)
    if not data.coalesced:
        return out
    out = coalesce_coo(out)
    return with_values(out._tl_array, values_of(out), name)


# -- joins ------------------------------------------------------------------------------


def cat(tensors, dim=0):
    """Concatenate tensors along a dimension."""
    tensors = list(tensors)
    if is_sparse(tensors[0]):
        tensors[0].is_contiguous()  # a compressed tensor does not use it
    for position, tensor in enumerate(tensors):
        if not is_sparse(tensor) or tensor.layout is not torch.sparse_coo:
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
    first = tensors[0]._tl_array
    dim, cut = wrap_dim(dim, first.ndim), first.sparse_dim
    for position, tensor in enumerate(tensors):
        data = tensor._tl_array
        if data.sparse_dim != cut or data.ndim != first.ndim or any(
            a != b for d, (a, b) in enumerate(zip(data.shape, first.shape, strict=True)) if d != dim
        ):  # fmt: skip
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), "
                f"with the same number of sparse dimensions, but got shape: {list(data.shape)}, which differs at "
                f"position {position}."
            )
    total = sum(t.shape[dim] for t in tensors)
    shape = [*first.shape[:dim], total, *first.shape[dim + 1 :]]
    parts, values, start = [], [], 0
    for tensor in tensors:
        data, elements = tensor._tl_array, values_of(tensor)
        index = data.parts[0]
        if dim < cut:
            index = torch.cat([index[:dim], index[dim : dim + 1] + start, index[dim + 1 :]])
        else:
            before, after = list(elements.shape), list(elements.shape)
            before[dim - cut + 1], after[dim - cut + 1] = start, total - start - data.shape[dim]
            elements = torch.cat([elements.new_zeros(before), elements, elements.new_zeros(after)], dim - cut + 1)
        parts.append(index)
        values.append(elements)
        start += data.shape[dim]
    return _make_coo(shape, torch.cat(parts, 1), torch.cat(values), "CatBackward0")


def stack(tensors, dim=0):
    """Stack tensors along a new dimension."""
    tensors[0].is_contiguous()
    dim = wrap_dim(dim, tensors[0].ndim + 1)
    out = cat([unsqueeze(tensor, dim) for tensor in tensors], dim)
    return with_values(out._tl_array, values_of(out), "StackBackward0")
