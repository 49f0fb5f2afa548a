"""Indices of the specified elements of a sparse tensor, and conversions between the sparse layouts."""

from __future__ import annotations

import math

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import recording
from .._tensor.conversions import _parse_to
from ..autograd.function import Function
from .differentiable_values import _ToDense, values_of, with_values
from .sparse_tensor import (
    BLOCK_LAYOUTS,
    COMPRESSED,
    LAYOUT_NAMES,
    ROW_COMPRESSED,
    SparseData,
    is_sparse,
    no_kernel_error,
    wrap_sparse,
)


def flatten_indices(indices, sizes):
    """Return each column of indices as its linear index in row-major order."""
    out = torch.zeros(indices.shape[1], dtype=torch.int64, device=indices.device)
    for index, size in zip(indices, sizes, strict=True):
        out = out * size + index
    return out


def unflatten_indices(line, sizes):
    """The columns of indices again: (len(sizes), nnz)."""
    rows: list = []
    for size in reversed(sizes):
        rows.insert(0, line % max(size, 1))
        line = line // max(size, 1)
    return torch.stack(rows) if rows else torch.zeros(0, line.shape[0], dtype=torch.int64, device=line.device)


def sum_by_index(values, into: int, index):
    """The rows of values added up by an index, (into, ...)."""
    if values.dtype is torch.bool:
        return sum_by_index(values.to(torch.uint8), into, index) != 0
    if values.dtype.itemsize < 4 and values.dtype.is_floating_point:
        return sum_by_index(values.float(), into, index).to(values.dtype)
    return values.new_zeros((into, *values.shape[1:])).index_add(0, index, values)


def expand_compressed(compressed, count: int):
    """Return the row of each element from the compressed indices of one matrix or a batch: (*batch, count)."""
    lead, rows = tuple(compressed.shape[:-1]), compressed.shape[-1] - 1
    counts = (compressed[..., 1:] - compressed[..., :-1]).reshape(-1)
    if not lead:
        return torch.repeat_interleave(counts, output_size=count)
    numbers = torch.arange(rows, device=compressed.device).expand(*lead, rows).reshape(-1)
    return torch.repeat_interleave(numbers, counts, output_size=math.prod(lead) * count).reshape(*lead, count)


def compress_sorted(rows, size: int, dtype=torch.int64):
    """The compressed indices of sorted row numbers, (*batch, nnz) -> (*batch, size + 1)."""
    lead = tuple(rows.shape[:-1])
    bounds = torch.arange(size + 1, device=rows.device).expand(*lead, size + 1).contiguous()
    return torch.searchsorted(rows.contiguous(), bounds).to(dtype)


def concat_ranges(first, counts):
    """Concatenate ranges that begin at `first` with lengths `counts`. Returns the range of each number, and the
    numbers.
    """
    which = torch.repeat_interleave(torch.arange(counts.shape[0], device=counts.device), counts)
    before = torch.cumsum(counts, 0) - counts
    step = torch.arange(which.shape[0], device=counts.device) - before.index_select(0, which)
    return which, first.index_select(0, which) + step


def rows_and_columns(data: SparseData):
    """Return the rows and the columns of a compressed tensor's blocks (elements are blocks of one), (*batch,
    nnz) each.
    """
    first, second = (part.to(torch.int64) for part in data.parts)
    rows = expand_compressed(first, data.nnz)
    return (rows, second) if data.layout in ROW_COMPRESSED else (second, rows)


def block_indices(data: SparseData):
    """Return the indices of a compressed tensor's blocks (elements are blocks of one): (batch + 2, number of all
    blocks).
    """
    pair = rows_and_columns(data)
    first = data.parts[0]
    lead = tuple(first.shape[:-1])
    batch = [
        torch.arange(size, device=first.device).reshape([-1 if i == d else 1 for i in range(data.batch + 1)])
        for d, size in enumerate(lead)
    ]
    whole = (*lead, data.nnz)
    return torch.stack([b.expand(whole).reshape(-1) for b in batch] + [p.reshape(-1) for p in pair])


def index_sizes(data: SparseData) -> tuple[int, ...]:
    """The sizes that indices count: of a tensor in blocks the numbers of blocks."""
    if data.layout is torch.sparse_coo:
        return data.shape[: data.sparse_dim]
    b, (height, width) = data.batch, data.blocksize
    return (*data.shape[:b], data.shape[b] // max(height, 1), data.shape[b + 1] // max(width, 1))


def specified_indices(data: SparseData):
    """Return the indices of the specified elements in the grid: (dims of the grid, n)."""
    return data.parts[0] if data.layout is torch.sparse_coo else block_indices(data)


def _to_blocks(data: SparseData, dense):
    """A dense tensor of the same shape, as (*grid, height, width, *dense sizes)."""
    b, (height, width) = data.batch, data.blocksize
    sizes = index_sizes(data)
    dense = dense.reshape(*sizes[:b], sizes[b], height, sizes[b + 1], width, *data.shape[b + 2 :])
    return dense.transpose(b + 1, b + 2)


def values_at(g, data: SparseData):
    """Return the elements of `g` at the specified places of a sparse tensor, in the shape of its values."""
    if not is_sparse(g):
        sizes = index_sizes(data)
        if data.layout in BLOCK_LAYOUTS:
            g = _to_blocks(data, g)
        flat = g.reshape(math.prod(sizes), *g.shape[len(sizes) :])
        return flat.index_select(0, flatten_indices(specified_indices(data), sizes)).reshape(data.values.shape)
    if data.same_places(g._tl_array):
        return values_of(g)
    if g.layout is not data.layout or g._tl_array.sparse_dim != data.sparse_dim or data.layout is not torch.sparse_coo:
        return values_at(densify(g), data)
    g = coalesce_coo(g)
    values = values_of(g)
    if not g._tl_array.nnz:
        return values.new_zeros(data.values.shape) + values.sum(0, dtype=values.dtype)
    found, there = find_sorted(
        flatten_indices(g._tl_array.parts[0], index_sizes(data)), flatten_indices(data.parts[0], index_sizes(data))
    )
    values = values.index_select(0, found)
    return torch.where(there.reshape(-1, *[1] * (values.ndim - 1)), values, torch.zeros_like(values))


def find_sorted(sorted_lines, wanted):
    """Return the position of each wanted number in a sorted tensor, and a mask of the numbers found."""
    at = torch.searchsorted(sorted_lines, wanted).clamp_max(sorted_lines.shape[0] - 1)
    return at, sorted_lines.index_select(0, at) == wanted


def densify(tensor):
    """Return the dense tensor; its gradient is read at the specified places only."""
    data, values = tensor._tl_array, values_of(tensor)
    sizes = index_sizes(data)
    count = math.prod(sizes)
    if data.layout is not torch.sparse_coo:
        values = values.reshape(-1, *values.shape[data.batch + 1 :])
    line = flatten_indices(specified_indices(data), sizes)
    if data.coalesced or data.layout is not torch.sparse_coo:
        out = values.new_zeros((count, *values.shape[1:])).index_copy(0, line, values)
    else:
        out = sum_by_index(values, count, line)
    if data.layout in BLOCK_LAYOUTS:
        out = out.reshape((*sizes, *out.shape[1:])).transpose(data.batch + 1, data.batch + 2)
    return out.reshape(data.shape)


def to_dense(tensor, dtype=None, *, masked_grad=None):
    """Return a dense tensor unchanged, else a dense copy of a sparse one."""
    out = tensor
    if is_sparse(tensor):
        out = _ToDense.apply(tensor) if masked_grad is False else densify(tensor)
    return out if dtype is None else out.to(dtype)


def unique_indices(data: SparseData):
    """Return the unique indices of a COO tensor, sorted, and the inverse: the index of each value among them."""
    sizes = index_sizes(data)
    line, where = torch.unique(flatten_indices(data.parts[0], sizes), return_inverse=True)
    return unflatten_indices(line, sizes), where


def coalesce_coo(tensor):
    """Coalesce a COO tensor: sort the indices, and sum the values at equal indices."""
    data = tensor._tl_array
    if data.coalesced:
        return tensor
    if data.nnz < 2:
        same = SparseData(data.layout, data.shape, data.parts, data.values, True)
        return with_values(same, values_of(tensor), "CoalesceBackward0")
    index, where = unique_indices(data)
    values = sum_by_index(values_of(tensor), index.shape[1], where)
    out = SparseData(data.layout, data.shape, (index,), values, True)
    return with_values(out, values, "CoalesceBackward0")


def to_coo(tensor):
    """The tensor as COO, its elements in row-major order."""
    data = tensor._tl_array
    if data.layout is torch.sparse_coo:
        return tensor
    values, index = values_of(tensor), block_indices(data)
    values = values.reshape(-1, *values.shape[data.batch + 1 :])
    if data.layout in BLOCK_LAYOUTS:
        height, width = data.blocksize
        down = torch.arange(height, device=index.device).reshape(1, height, 1)
        right = torch.arange(width, device=index.device).reshape(1, 1, width)
        whole = (index.shape[1], height, width)
        rows = (index[-2].reshape(-1, 1, 1) * height + down).expand(whole).reshape(-1)
        columns = (index[-1].reshape(-1, 1, 1) * width + right).expand(whole).reshape(-1)
        lead = index[:-2].repeat_interleave(height * width, 1)
        index = torch.cat([lead, rows.unsqueeze(0), columns.unsqueeze(0)])
        values = values.reshape(-1, *values.shape[3:])
    if data.layout is not torch.sparse_csr:
        order = torch.argsort(flatten_indices(index, data.shape[: index.shape[0]]), stable=True)
        index, values = index[:, order], values.index_select(0, order)
    out = SparseData(torch.sparse_coo, data.shape, (index,), values, True)
    return with_values(out, values, "ToSparseBackward1")


def coo_to_compressed(tensor, kind, blocksize=None):
    """Convert a COO tensor with the sparse dimensions of a batch and two more to a compressed layout."""
    tensor = coalesce_coo(tensor)
    data, values = tensor._tl_array, values_of(tensor)
    batch = data.sparse_dim - 2
    lead = data.shape[:batch]
    rows, columns = data.shape[batch : batch + 2]
    index, inner = data.parts[0], None
    if kind in BLOCK_LAYOUTS:
        height, width = blocksize
        inner = index[-2] % height * width + index[-1] % width
        index = torch.cat([index[:-2], (index[-2] // height).unsqueeze(0), (index[-1] // width).unsqueeze(0)])
        rows, columns = rows // height, columns // width
    long, short = (index[-2], index[-1]) if kind in ROW_COMPRESSED else (index[-1], index[-2])
    sizes = (*lead, rows, columns) if kind in ROW_COMPRESSED else (*lead, columns, rows)
    line = flatten_indices(torch.cat([index[:-2], long.unsqueeze(0), short.unsqueeze(0)]), sizes)
    if inner is None:
        if kind not in ROW_COMPRESSED:
            line, order = torch.sort(line)
            values = values.index_select(0, order)
    else:
        line, where = torch.unique(line, return_inverse=True)
        tail = tuple(values.shape[1:])
        values = sum_by_index(values, line.shape[0] * height * width, where * (height * width) + inner)
        values = values.reshape(line.shape[0], height, width, *tail)
    index = unflatten_indices(line, sizes)
    each = _count_per_batch(line, math.prod(lead), sizes[-2] * sizes[-1]) if lead else line.shape[0]
    first = compress_sorted(index[-2].reshape(*lead, each), sizes[-2])
    parts = first, index[-1].reshape(*lead, each)
    values = values.reshape(*lead, each, *values.shape[1:])
    return with_values(SparseData(kind, data.shape, parts, values), values, "ToSparseBackward1")


def _count_per_batch(line, batches: int, size: int) -> int:
    """Return the number of elements in each matrix of a batch. RuntimeError if it differs between matrices."""
    counts = torch.bincount(line // max(size, 1), minlength=batches) if batches else line
    if batches and bool((counts != counts[0]).any()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    return int(counts[0]) if batches else 0


def _dense_to_coo(tensor, sparse_dim: int):
    """Convert a dense tensor to COO: its nonzero elements, or its slices with a nonzero element."""
    lead = tuple(tensor.shape[:sparse_dim])
    if not sparse_dim:
        index = torch.zeros(0, 1, dtype=torch.int64, device=tensor.device)
        return SparseData(torch.sparse_coo, tensor.shape, (index,), tensor.detach().unsqueeze(0), True)
    mask = tensor.detach() != 0
    if sparse_dim < tensor.ndim:
        mask = mask.reshape(*lead, -1).any(-1)
    index = mask.nonzero().t().contiguous()
    data = SparseData(torch.sparse_coo, tensor.shape, (index,), tensor.detach(), True)
    flat = tensor.detach().reshape(math.prod(lead), *tensor.shape[sparse_dim:])
    return data.over(flat.index_select(0, flatten_indices(index, lead)))


def to_layout_of(g, data: SparseData):
    """A gradient in the layout of the tensor that it is for."""
    if is_sparse(g):
        return g
    if data.layout is torch.sparse_coo:
        return to_sparse(g, data.sparse_dim)
    return to_sparse(g, layout=data.layout, blocksize=data.blocksize if data.layout in BLOCK_LAYOUTS else None,
                     dense_dim=data.dense_dim)  # fmt: skip


def to_sparse(tensor, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """Return the tensor in a sparse layout, by default COO. RuntimeError for conversions that PyTorch does not
    support.
    """
    if isinstance(sparse_dim, type(torch.strided)):
        sparse_dim, layout = None, sparse_dim
    kind = torch.sparse_coo if layout is None else layout
    name = "to_sparse" if is_sparse(tensor) else "dense_to_sparse"
    if sparse_dim is not None and layout is not None:
        raise RuntimeError(
            f"{name}: layout, blocksize, and dense_dim arguments cannot be used together with sparse_dim"
        )
    if kind is torch.strided:
        return to_dense(tensor) if is_sparse(tensor) else tensor
    if kind in BLOCK_LAYOUTS and blocksize is None and tensor.layout is not kind:
        raise RuntimeError(
            f"{name}: conversion from {LAYOUT_NAMES[tensor.layout]} to {LAYOUT_NAMES[kind]} without blocksize "
            f"argument given is not "
            "supported"
        )
    if kind not in BLOCK_LAYOUTS and blocksize is not None and tensor.layout is not kind:
        raise RuntimeError(
            f"{name}: conversion from {LAYOUT_NAMES[tensor.layout]} to {LAYOUT_NAMES[kind]} with blocksize argument "
            f"given is not "
            "supported"
        )
    if is_sparse(tensor):
        if sparse_dim is not None and sparse_dim != tensor._tl_array.sparse_dim:
            coo = tensor.layout is torch.sparse_coo
            raise RuntimeError(
                f"{'to_sparse' if coo else 'sparse_compressed_to_sparse'}: conversion from "
                f"{LAYOUT_NAMES[tensor.layout]} to "
                f"Sparse with sparse_dim argument !={'self.sparse_dim()' if coo else 2} is not supported"
            )
        return _convert_layout(tensor, kind, blocksize)
    if kind is not torch.sparse_coo:
        return _dense_to_compressed(tensor, kind, blocksize, dense_dim or 0)
    sparse_dim = tensor.ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
    _check_sparse_dim(tensor, sparse_dim)
    return _FromDense.apply(tensor, _dense_to_coo(tensor, sparse_dim))


class _FromDense(Function):
    """Convert a dense tensor to a sparse one; its gradient is dense, at the specified elements."""

    @staticmethod
    def forward(ctx, tensor, data):
        return wrap_sparse(data)

    @staticmethod
    def backward(ctx, g):
        return densify(g) if is_sparse(g) else g, None


_FromDense._backward_cls.__name__ = "ToSparseBackward0"


def _check_sparse_dim(tensor, sparse_dim: int) -> None:
    if tensor.ndim and not sparse_dim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not 0 <= sparse_dim <= tensor.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{tensor.ndim}] range, but {sparse_dim} is given"
        )


def _dense_to_compressed(tensor, kind, blocksize, dense_dim: int):
    name = f"dense_to_{kind.name}"
    if tensor.ndim - dense_dim < 2:
        raise IndexError(
            f"select(): index 1 out of range for tensor of size {[*tensor.shape, 1]} at dimension {tensor.ndim}"
        )
    if kind in BLOCK_LAYOUTS:
        blocksize = _check_blocksize(name, tensor.shape, tensor.ndim - dense_dim - 2, blocksize)
    data = _dense_to_coo(tensor, tensor.ndim - dense_dim)
    with recording(False):
        out = coo_to_compressed(wrap_sparse(data), kind, blocksize)
    return _FromDense.apply(tensor, out._tl_array)


def _check_blocksize(name: str, shape, batch: int, blocksize) -> tuple[int, int]:
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if len(blocksize) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if min(blocksize) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(blocksize)}")
    rows, columns = shape[batch : batch + 2]
    if rows % blocksize[0] or columns % blocksize[1]:
        raise RuntimeError(
            f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
            f"({blocksize[0]},{blocksize[1]})"
        )
    return tuple(blocksize)


# The target layouts of each compressed layout.
_CONVERTIBLE_LAYOUTS = {
    torch.sparse_csr: (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc),
    torch.sparse_csc: (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc),
    torch.sparse_bsr: (torch.sparse_bsr, torch.sparse_bsc),
    torch.sparse_bsc: (torch.sparse_bsr, torch.sparse_bsc),
}


class _ConvertLayout(Function):
    """Convert a sparse tensor to another layout; the gradient returns in the layout of the input."""

    @staticmethod
    def forward(ctx, tensor, kind, blocksize):
        ctx.places = tensor._tl_array
        if kind is torch.sparse_coo:
            return to_coo(tensor)
        out = coo_to_compressed(to_coo(tensor), kind, blocksize)
        if tensor.layout is not torch.sparse_coo:
            out._tl_array.parts = tuple(part.to(tensor._tl_array.parts[0].dtype) for part in out._tl_array.parts)
        return out

    @staticmethod
    def backward(ctx, g):
        if not is_sparse(g) or g.layout is ctx.places.layout:
            return g, None, None
        blocksize = ctx.places.blocksize if ctx.places.layout in BLOCK_LAYOUTS else None
        return _convert_layout(g, ctx.places.layout, blocksize), None, None


_ConvertLayout._backward_cls.__name__ = "ToSparseBackward1"


def _convert_layout(tensor, kind, blocksize):
    """Convert between sparse layouts."""
    data = tensor._tl_array
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if data.layout is kind and (blocksize is None or tuple(blocksize) == data.blocksize):
        return tensor
    if data.layout is torch.sparse_coo:
        if data.sparse_dim != 2:
            raise RuntimeError(
                f"conversion from Sparse to {LAYOUT_NAMES[kind]} for input tensors with sparse_dim()!=2 is not "
                f"supported"
            )
    elif kind is not torch.sparse_coo and kind not in _CONVERTIBLE_LAYOUTS[data.layout]:
        raise RuntimeError(
            f"sparse_compressed_to_{kind.name}: expected SparseCsr or SparseCsc layout but got "
            f"{LAYOUT_NAMES[data.layout]}"
        )
    if kind in BLOCK_LAYOUTS:
        name = f"{'coo' if data.layout is torch.sparse_coo else 'sparse_compressed'}_to_{kind.name}"
        blocksize = data.blocksize if blocksize is None else blocksize
        blocksize = _check_blocksize(name, data.shape, data.batch, blocksize)
    return _ConvertLayout.apply(tensor, kind, blocksize)


def to_compressed(tensor, name: str, blocksize=None, dense_dim=None):
    """`to_sparse_csr` and its kind."""
    return to_sparse(tensor, layout=getattr(torch, name), blocksize=blocksize, dense_dim=dense_dim)


def sparse_mask(tensor, mask):
    """Return a sparse tensor with the elements of `tensor` at the specified places of `mask`, of the same shape."""
    if not is_sparse(mask):
        raise no_kernel_error("sparse_mask", mask)
    if tensor.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(tensor.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return with_values(
        mask._tl_array.over(_make_metadata_placeholder(tensor)),
        values_at(tensor, mask._tl_array),
        "SparseMaskBackward0",
    )


def _make_metadata_placeholder(tensor):
    """Return a tensor with the metadata of values that are set later."""
    return tensor._tl_array.values if is_sparse(tensor) else tensor.detach()


def sparse_to(tensor, *args, **kwargs):
    """`Tensor.to` of a sparse tensor."""
    dtype, where, copy, _ = _parse_to(*args, **kwargs)
    data, values = tensor._tl_array, values_of(tensor)
    new = values if dtype is None or dtype is values.dtype else values.to(dtype)
    parts = data.parts
    if where is not None and CALLBACKS.move(data.values, where) is not data.values:
        new, parts = CALLBACKS.move(new, where), tuple(CALLBACKS.move(part, where) for part in parts)
    if copy and parts is data.parts:
        parts = tuple(part.clone() for part in parts)
        new = new.clone() if new is values else new
    if new is values:
        return tensor
    data = SparseData(data.layout, data.shape, parts, data.values, data.coalesced)
    return with_values(data.over(new), new, "ToCopyBackward0")


__all__ = [
    "COMPRESSED", "coalesce_coo", "coo_to_compressed", "to_coo", "densify", "find_sorted", "unflatten_indices",
    "to_layout_of", "flatten_indices", "sparse_to",
    "specified_indices", "sparse_mask", "sum_by_index", "to_compressed", "to_dense", "to_sparse", "values_at",
]  # fmt: skip
