"""Constructors of sparse tensors, and the invariant checks they run if checks are enabled."""

from __future__ import annotations

import operator
from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._types.layouts import are_valid_sizes
from .differentiable_values import with_values
from .sparse_tensor import BLOCK_LAYOUTS, COMPRESSED, LAYOUT_NAMES, ROW_COMPRESSED, SparseData


class InvariantChecks:
    """The switch of the invariant checks in constructors."""

    on = False


INVARIANT_CHECKS = InvariantChecks()


def _as_tensor(value, dtype, device):
    if isinstance(value, torch.Tensor):
        return value.to(device=device, dtype=dtype)
    return torch.tensor(value, dtype=dtype, device=device)


def _as_size(size) -> tuple[int, ...]:
    """Return a size as integers; a float is an error."""
    return tuple(map(operator.index, size))


def _pin_parts(pin_memory: bool, *tensors) -> tuple:
    """Return the parts of a sparse tensor, in page-locked memory if requested."""
    if not pin_memory:
        return tensors
    CALLBACKS.check_pinning()
    return tuple(CALLBACKS.pin_memory(tensor) for tensor in tensors)


def _finish_constructor(data: SparseData, values, requires_grad: bool, check) -> Any:
    if INVARIANT_CHECKS.on if check is None else check:
        validate(data)
    out = with_values(data, values)
    if requires_grad:
        return set_requires_grad(out.detach(), True)
    return out


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False,
                      requires_grad=False, check_invariants=None, is_coalesced=None):  # fmt: skip
    """A sparse tensor in the COO layout: `values[i]` is at the index `indices[:, i]`; values at equal indices are
    summed.

    indices: (sparse_dim, nnz), of any integer type. values: (nnz, *dense sizes). size: the shape, by default the
    smallest that fits. `sparse_coo_tensor(size)` has no elements. RuntimeError for tensors that do not fit each other,
    and with `check_invariants` for indices out of bounds.

    >>> import torchlite as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None and not isinstance(indices, torch.Tensor):
        _pin_parts(pin_memory)
        return _make_empty_coo(_as_size(indices if size is None else size), dtype, device, requires_grad)
    values = _as_tensor(values, dtype, device)
    indices = _as_tensor(indices, None, values.device if device is None else device).to(torch.int64)
    indices, values = _pin_parts(pin_memory, indices, values)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    values = values.unsqueeze(0) if not values.ndim else values
    sparse_dim, nnz = indices.shape
    if nnz != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {nnz}, nnz from values: "
            f"{values.shape[0]}"
        )
    if size is None:
        _check_no_negative_index(indices)
        lead = [int(n) + 1 for n in indices.max(1).values.tolist()] if nnz and sparse_dim else [0] * sparse_dim
        size = (*lead, *values.shape[1:])
    size = _as_size(size)
    dense_dim = values.ndim - 1
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    data = SparseData(torch.sparse_coo, size, (indices.detach(),), values.detach(), bool(is_coalesced) or nnz < 2)
    return _finish_constructor(data, values, requires_grad, check_invariants)


def _make_empty_coo(size: tuple, dtype, device, requires_grad: bool, dense: int = 0) -> Any:
    sparse_dim = len(size) - dense
    indices = torch.zeros(sparse_dim, 0, dtype=torch.int64, device=device)
    values = torch.zeros(0, *size[sparse_dim:], dtype=dtype, device=device)
    return _finish_constructor(
        SparseData(torch.sparse_coo, size, (indices,), values, True), values, requires_grad, False
    )


def _check_no_negative_index(indices) -> None:
    if indices.numel():
        for dim, lowest in enumerate(indices.min(1).values.tolist()):
            if lowest < 0:
                raise RuntimeError(f"found negative index {lowest} for dim {dim}")


def empty(size, dtype, device, kind, requires_grad: bool = False, blocks: Any = None, index_dtype=torch.int64) -> Any:
    """A sparse tensor without specified elements."""
    size = _as_size(size)
    if kind is torch.sparse_coo:
        return _make_empty_coo(size, dtype, device, requires_grad)
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    blocks = blocks or ((1, 1) if kind in BLOCK_LAYOUTS else None)
    long = size[-2] if kind in ROW_COMPRESSED else size[-1]
    if blocks:
        long //= blocks[kind not in ROW_COMPRESSED]
    first = torch.zeros(*size[:-2], long + 1, dtype=index_dtype, device=device)
    values = torch.zeros(*size[:-2], 0, *(blocks or ()), dtype=dtype, device=device)
    data = SparseData(kind, size, (first, first.new_zeros((*size[:-2], 0))), values)
    return _finish_constructor(data, values, requires_grad, False)


def compressed_tensor(kind, first, second, values, size, dtype, device, requires_grad, check) -> Any:
    """A tensor of a compressed layout out of its parts."""
    values = _as_tensor(values, dtype, device)
    where = values.device if device is None else device
    first, second = _as_tensor(first, None, where), _as_tensor(second, None, where)
    if size is None:
        size = _infer_size(kind, first, second, values)
    size = _as_size(size)
    data = SparseData(kind, size, (first.detach(), second.detach()), values.detach())
    return _finish_constructor(data, values, requires_grad, check)


def _infer_size(kind, first, second, values) -> tuple[int, ...]:
    batch = first.ndim - 1
    height, width = values.shape[batch + 1 : batch + 3] if kind in BLOCK_LAYOUTS else (1, 1)
    long = first.shape[-1] - 1
    short = int(second.max()) + 1 if second.numel() else 0
    rows, columns = (long, short) if kind in ROW_COMPRESSED else (short, long)
    tail = values.shape[batch + (3 if kind in BLOCK_LAYOUTS else 1) :]
    return (*first.shape[:-1], rows * height, columns * width, *tail)


def _compressed_part_names(kind) -> tuple[str, str]:
    return ("crow_indices", "col_indices") if kind in ROW_COMPRESSED else ("ccol_indices", "row_indices")


def _define_constructor(kind):
    """Return the constructor of a compressed layout. Its first two parameters have the names of the layout's indices,
    which Python stores in the code object.
    """
    first, second = _compressed_part_names(kind)

    def function(first, second, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
                 requires_grad=False, check_invariants=None):  # fmt: skip
        if layout is not None and layout is not kind:
            raise RuntimeError(
                f"{kind.name}_tensor: layout must be {LAYOUT_NAMES[kind]} but got {LAYOUT_NAMES[layout]}"
            )
        if pin_memory:
            first, second, values = _pin_parts(
                True, *(_as_tensor(part, None, None) for part in (first, second, values))
            )
        return compressed_tensor(kind, first, second, values, size, dtype, device, requires_grad, check_invariants)

    code = function.__code__
    function.__code__ = code.replace(co_varnames=(first, second, *code.co_varnames[2:]), co_name=f"{kind.name}_tensor")
    function.__name__ = function.__qualname__ = f"{kind.name}_tensor"
    function.__doc__ = (
        f"A sparse tensor in the {kind.name[7:].upper()} layout out of `{first}`, `{second}` and `values`; without "
        "`size` it is just large enough. Takes dtype, device, requires_grad and check_invariants, with which "
        "RuntimeError says what does not fit."
    )
    return function


sparse_csr_tensor, sparse_csc_tensor = _define_constructor(torch.sparse_csr), _define_constructor(torch.sparse_csc)
sparse_bsr_tensor, sparse_bsc_tensor = _define_constructor(torch.sparse_bsr), _define_constructor(torch.sparse_bsc)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None,
                             device=None, pin_memory=False, requires_grad=False, check_invariants=None):  # fmt: skip
    """A sparse tensor in one of the compressed layouts: CSR, CSC, BSR or BSC. RuntimeError for other values of
    `layout`.

    >>> import torchlite as torch
    >>> x = torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], layout=torch.sparse_csr)
    >>> x.to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """
    if isinstance(size, int):
        raise TypeError("sparse_compressed_tensor(): argument 'size' (position 4) must be tuple of ints, not int")
    if layout not in COMPRESSED:
        got = "none" if layout is None else LAYOUT_NAMES[layout]
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    parts = (compressed_indices, plain_indices, values)
    if pin_memory:
        parts = _pin_parts(True, *(_as_tensor(part, None, None) for part in parts))
    return compressed_tensor(layout, *parts, size, dtype, device, requires_grad, check_invariants)


# -- checks -----------------------------------------------------------------------


def validate(data: SparseData) -> None:
    """Check the invariants of a sparse tensor. RuntimeError with PyTorch's message if they do not hold."""
    if data.layout is torch.sparse_coo:
        _validate_coo(data)
    else:
        _validate_sizes(data)
        _validate_compressed(data)


def _validate_coo(data: SparseData) -> None:
    indices, values, size = data.parts[0], data.values, data.shape
    sparse_dim = indices.shape[0]
    expected = [indices.shape[1], *size[sparse_dim:]]
    if list(values.shape) != expected:
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(values.shape)}")
    if not indices.numel():
        return
    _check_no_negative_index(indices)
    for dim, highest in enumerate(indices.max(1).values.tolist()):
        if highest >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {highest}"
            )
    if data.coalesced:
        from .layout_conversion import flatten_indices

        line = flatten_indices(indices, size[:sparse_dim])
        if bool((line[1:] <= line[:-1]).any()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def _validate_sizes(data: SparseData) -> None:
    first, second, values, size = *data.parts, data.values, data.shape
    one, two = _compressed_part_names(data.layout)
    block = 2 if data.layout in BLOCK_LAYOUTS else 0
    batch = first.ndim - 1
    dense = values.ndim - batch - block - 1
    if first.ndim < 1:
        raise RuntimeError(f"{one} must have dimensionality >= 1 but got {first.ndim}")
    if first.ndim != second.ndim:
        raise RuntimeError(
            f"{one} and {two} dimensionalities must be equal but got {first.ndim} and {second.ndim}, respectively"
        )
    if dense < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got "
            f"{values.ndim}"
        )
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) "
            f"but got {len(size)}"
        )
    heads = [list(part.shape[:batch]) for part in (first, second, values)]
    if any(head != list(size[:batch]) for head in heads):
        raise RuntimeError(
            f"all batch dimensions of {one} (={heads[0]}), {two} (={heads[1]}), and values (={heads[2]}) must be equal "
            f"to tensor batch dimensions (={list(size[:batch])})"
        )
    blocks = values.shape[batch + 1 : batch + 3] if block else (1, 1)
    for i, length in enumerate(blocks):
        if size[batch + i] % length if length else size[batch + i]:
            raise RuntimeError(
                f"tensor shape[{batch + i}] (={size[batch + i]}) must be divisible with blocksize[{i}] (={length}) as "
                "defined by values shape"
            )
    by_rows = data.layout in ROW_COMPRESSED
    long = size[batch + (not by_rows)] // max(blocks[0 if by_rows else 1], 1)
    if first.shape[-1] != long + 1:
        what = ("rows" if by_rows else "columns") if not block else ("row blocks" if by_rows else "column blocks")
        raise RuntimeError(
            f"{one}.shape[-1] must be equal to the number of {what} + 1 (={long + 1}), but got {first.shape[-1]}"
        )
    if second.shape[-1] != values.shape[batch]:
        raise RuntimeError(
            f"{two}.shape[-1] must be equal to nnz (={values.shape[batch]}) as defined by values.shape[{batch}], but "
            f"got {second.shape[-1]}"
        )


def _validate_compressed(data: SparseData) -> None:
    (first, second), batch = data.parts, data.parts[0].ndim - 1
    one, two = _compressed_part_names(data.layout)
    kinds = first.dtype, second.dtype
    if kinds[0] is not kinds[1]:
        raise RuntimeError(
            f"{one} and {two} must have the same dtype, bot got {kinds[0].scalar_name} and {kinds[1].scalar_name}, "
            "respectively"
        )
    if kinds[0] not in (torch.int32, torch.int64):
        raise RuntimeError(f"{one} and {two} dtype must be Int or Long, but got {kinds[0].scalar_name}")
    by_rows = data.layout in ROW_COMPRESSED
    height, width = data.blocksize
    rows, columns = data.shape[batch] // max(height, 1), data.shape[batch + 1] // max(width, 1)
    inner, count, name = (columns, "ncols", "nrows") if by_rows else (rows, "nrows", "ncols")

    def refuse(what: str):
        raise RuntimeError(f"`{what}` is not satisfied.")

    if bool((first[..., 0] != 0).any()):
        refuse(f"{one}[..., 0] == 0")
    if bool((first[..., -1] != second.shape[-1]).any()):
        refuse(f"{one}[..., -1] == nnz")
    steps = first[..., 1:] - first[..., :-1]
    if bool(((steps < 0) | (steps > inner)).any()):
        refuse(f"0 <= {one}[..., 1:] - {one}[..., :-1] <= {count}")
    if second.numel() and bool(((second < 0) | (second >= inner)).any()):
        refuse(f"0 <= {two} < {count}")
    from .layout_conversion import expand_compressed

    long = expand_compressed(first, second.shape[-1])
    line = long * max(inner, 1) + second
    if bool((line[..., 1:] <= line[..., :-1]).any()):
        refuse(
            f"{two}[..., {one}[..., i - 1]:{one}[..., i]] for all i = 1, ..., {name} are sorted and distinct along the "
            "last dimension values"
        )


def rebuild(kind, parts) -> Any:
    """A sparse tensor out of a file. RuntimeError for anything that is none."""
    if kind is torch.sparse_coo and type(parts) is tuple and len(parts) == 3:
        parts = (*parts, None)
    if type(parts) is not tuple or len(parts) != 4 or kind not in (torch.sparse_coo, *COMPRESSED):
        raise NotImplementedError(f"rebuilding sparse tensor for layout {kind}")
    *tensors, size, coalesced = parts if kind is torch.sparse_coo else (*parts, False)
    if not all(isinstance(one, torch.Tensor) and one.layout is torch.strided for one in tensors):
        raise RuntimeError("a sparse tensor is made of tensors")
    if not isinstance(size, (tuple, list)) or not are_valid_sizes(size):
        raise RuntimeError("the size of a sparse tensor must be few integers that are not negative")
    *index, values = (one.detach() for one in tensors)
    data = SparseData(kind, size, tuple(index), values, bool(coalesced))
    ranks = [2] if kind is torch.sparse_coo else [max(index[0].ndim, 1)] * 2
    if [one.ndim for one in index] != ranks or not values.ndim or any(one.dtype.category >= 2 for one in index):
        raise RuntimeError("the indices of a sparse tensor have a wrong number of dimensions, or are no integers")
    if data.nnz != (values.shape[0] if kind is torch.sparse_coo else values.shape[data.batch : data.batch + 1][0]):
        raise RuntimeError("the indices of a sparse tensor are not as many as its values")
    if kind is torch.sparse_coo and len(size) != index[0].shape[0] + values.ndim - 1:
        raise RuntimeError("the size of a sparse tensor does not fit its indices and values")
    return _finish_constructor(data, values, False, None)


def validate_coo_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """RuntimeError if the arguments do not form a COO tensor."""
    validate(SparseData(torch.sparse_coo, size, (indices,), values, bool(is_coalesced)))


def validate_compressed_args(kind, first, second, values, size, check_pinning=None):
    """RuntimeError if the arguments do not form a tensor of a compressed layout."""
    validate(SparseData(kind, size, (first, second), values))


def coo_to_csr_indices(input, size, *, out_int32=False):
    """Compressed row indices of sorted row numbers."""
    from .layout_conversion import compress_sorted

    return compress_sorted(input, size, torch.int32 if out_int32 else torch.int64)


def csr_to_coo_indices(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The indices of COO, (2, nnz), of compressed rows and columns."""
    from .layout_conversion import expand_compressed

    kind = torch.int32 if out_int32 else torch.int64
    rows, columns = expand_compressed(crow_indices, col_indices.shape[-1]).to(kind), col_indices.to(kind)
    return torch.stack((columns, rows) if transpose else (rows, columns))


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix with the rows of `diagonals` as its diagonals at `offsets`; column j of a row is in column j of
    the matrix. RuntimeError for tensors that do not fit each other, ValueError for a shape that is not a matrix's.

    >>> import torchlite as torch
    >>> torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    offsets = offsets.unsqueeze(0) if not offsets.ndim else offsets
    if diagonals.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})"
        )
    if layout not in (None, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got " + LAYOUT_NAMES[layout]
        )
    if offsets.dtype is not torch.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}")
    if torch.unique(offsets).shape[0] != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    count, length = diagonals.shape
    columns = torch.arange(length, device=diagonals.device).expand(count, length)
    rows = columns - offsets.unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    index = torch.stack([rows[inside], columns[inside]])
    matrix = sparse_coo_tensor(index, diagonals[inside], tuple(shape))
    return matrix if layout in (None, torch.sparse_coo) else matrix.to_sparse(layout=layout)
