"""Matrix products with one or two sparse operands."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import recording
from .._dispatch.parsed_functions import parsed
from ..autograd.function import Function
from .constructors import sparse_coo_tensor
from .differentiable_values import values_of, with_node_name, with_values
from .elementwise import add_scaled
from .layout_conversion import (
    coalesce_coo,
    compress_sorted,
    concat_ranges,
    coo_to_compressed,
    flatten_indices,
    index_sizes,
    rows_and_columns,
    specified_indices,
    to_coo,
)
from .sparse_tensor import BLOCK_LAYOUTS, LAYOUT_NAMES, SparseData, is_sparse, no_kernel_error, wrap_sparse


def _element_rows_and_columns(data: SparseData):
    """(rows, columns) of the elements of a matrix or a batch of them, or of its blocks, counted through the batch."""
    if data.layout is not torch.sparse_coo and not data.batch:
        return rows_and_columns(data)
    index, sizes = specified_indices(data), index_sizes(data)
    if len(sizes) == 2:
        return index[0], index[1]
    lead = flatten_indices(index[:-2], sizes[:-2])
    return lead * sizes[-2] + index[-2], lead * sizes[-1] + index[-1]


def _to_rows(data: SparseData, turned: bool):
    """Return the elements of a matrix, or of its transpose, by rows: the row pointers, the column indices, and the
    permutation of the elements (None for the identity).
    """
    if data.layout is (torch.sparse_csc if turned else torch.sparse_csr) and not data.batch:
        return (*data.parts, None)
    rows, columns = _element_rows_and_columns(data)
    height = math.prod(data.shape[:-2]) * data.shape[-1 if turned else -2]
    if not turned and (data.layout is torch.sparse_csr or data.coalesced):
        return compress_sorted(rows, height), columns, None
    rows, columns = (columns, rows) if turned else (rows, columns)
    order, starts = CALLBACKS.F._stable_argsort_rows(rows, height)
    return starts, columns.index_select(0, order), order


def _multiply_sparse_dense(data: SparseData, values, dense, turned: bool = False):
    """Multiply sparse by dense, without history: (*batch, m, k) times (*batch, k, n). `turned` transposes the sparse
    operand.
    """
    if data.layout in BLOCK_LAYOUTS:
        data = to_coo(wrap_sparse(data.over(values)))._tl_array
        values = data.values
    to = dense.dtype
    if values.dtype is not to:
        raise RuntimeError(f"expected scalar type {values.dtype.scalar_name} but found {to.scalar_name}")
    starts, columns, order = _to_rows(data, turned)
    values = values.reshape(-1) if order is None else values.reshape(-1).index_select(0, order)
    flat = dense.reshape(math.prod(dense.shape[:-1]), dense.shape[-1])
    if to is torch.bool:
        values, flat = values.to(torch.int64), flat.to(torch.int64)
    out = CALLBACKS.F._csr_mm(columns, starts, values, flat).to(to)
    return out.reshape(*data.shape[:-2], data.shape[-1 if turned else -2], dense.shape[-1])


class _SampledMatmul(Function):
    """The product of two dense matrices sampled at the indices of a sparse one: `left @ right.mT` there, as its
    values.
    """

    @staticmethod
    def forward(ctx, left, right, data):
        ctx.save_for_backward(left, right)
        ctx.places = data
        rows, columns = _element_rows_and_columns(data)
        flat = (one.reshape(math.prod(one.shape[:-1]), one.shape[-1]) for one in (left, right))
        return CALLBACKS.F._sampled_mm(rows, columns, *flat).reshape(data.values.shape)

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        needs, tensor = ctx.needs_input_grad, with_values(ctx.places, g)
        to_left = sparse_dense_matmul(tensor, right.conj(), True) if needs[0] else None
        # The transpose is the conjugate of the adjoint.
        to_right = _SparseDenseMatmul.apply(tensor, left, True, True).conj() if needs[1] else None
        return to_left, to_right, None


def _sampled_matmul(data: SparseData, left, right):
    """Return `left @ right.mT` at the indices of a sparse matrix, as its values."""
    if data.layout not in BLOCK_LAYOUTS:
        return _SampledMatmul.apply(left, right, data)
    (rows, columns), (height, width) = _element_rows_and_columns(data), data.blocksize
    one = left.reshape(-1, height, left.shape[-1]).index_select(0, rows)
    two = right.reshape(-1, width, right.shape[-1]).index_select(0, columns)
    return torch.matmul(one, two.mT).reshape(data.values.shape)


def _sparse_operand_gradient(tensor, left, right):
    """Return the gradient of a sparse matrix: `left @ right.mT` at its indices."""
    tensor = wrap_sparse(tensor._tl_array)
    data = (coalesce_coo(tensor) if tensor.layout is torch.sparse_coo else tensor)._tl_array
    return with_values(data, _sampled_matmul(data, left, right))


class _SparseDenseMatmul(Function):
    """`sparse @ dense`, or with `turned` `sparse.mH @ dense`. The gradient of the sparse operand is sparse (`masked`)
    or dense, as PyTorch has it in `torch.sparse.mm` and in `torch.mm`.
    """

    @staticmethod
    def forward(ctx, tensor, dense, masked, turned):
        ctx.save_for_backward(tensor, dense)
        ctx.masked, ctx.turned = masked, turned
        data = tensor._tl_array
        return _multiply_sparse_dense(data, data.values.conj() if turned else data.values, dense, turned)

    @staticmethod
    def backward(ctx, g):
        tensor, dense = ctx.saved_tensors
        to_sparse = to_dense = None
        if ctx.needs_input_grad[0]:
            left, right = (dense, g) if ctx.turned else (g, dense)
            to_sparse = (
                _sparse_operand_gradient(tensor, left, right.conj()) if ctx.masked else torch.matmul(left, right.mH)
            )
        if ctx.needs_input_grad[1]:
            to_dense = _SparseDenseMatmul.apply(tensor, g, ctx.masked, not ctx.turned)
        return to_sparse, to_dense, None, None


def adjoint(tensor):
    """The conjugate transpose of a sparse matrix, or of each of a batch."""
    flat = to_coo(tensor)
    data = flat._tl_array
    index = data.parts[0]
    turned = torch.cat([index[:-2], index[-1:], index[-2:-1]])
    shape = (*data.shape[:-2], data.shape[-1], data.shape[-2])
    values = values_of(flat)
    values = values.conj() if values.is_complex() else values
    return with_values(SparseData(torch.sparse_coo, shape, (turned,), values), values)


def _check_matmul_shapes(name: str, a, b) -> None:
    if a.ndim != 2 or b.ndim != 2:
        which = "mat1" if a.ndim != 2 else "mat2"
        if name == "mm" and a.ndim != 2:
            raise RuntimeError(f"mm: Expected dim 2 tensor, but got {a.ndim}-D tensor")
        raise RuntimeError(f"{name}: Expected {which} to be a matrix, got {(a if a.ndim != 2 else b).ndim}-D tensor")
    coo = is_sparse(a) and a.layout is torch.sparse_coo and not is_sparse(b)
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}"
            if coo
            else f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype is not b.dtype:
        one, two = a.dtype.scalar_name, b.dtype.scalar_name
        raise RuntimeError(
            f"expected scalar type {one} but found {two}"
            if coo
            else f"expected m1 and m2 to have the same dtype, but got: {one} != {two}"
        )


def sparse_dense_matmul(tensor, dense, masked: bool, node: str = "MmBackward0"):
    """Multiply sparse matrices by dense ones of the same batch."""
    return with_node_name(_SparseDenseMatmul, node).apply(tensor, dense, masked, False)


def sparse_matmul(a, b, masked: bool = False, node: str = "MmBackward0"):
    """Return the product of two matrices, at least one of them sparse; two sparse ones have a sparse product."""
    _check_matmul_shapes("mm", a, b)
    if is_sparse(a) and is_sparse(b):
        return _sparse_sparse_matmul(a, b) if masked else _SparseMm.apply(a, b)
    if is_sparse(a):
        return sparse_dense_matmul(a, b, masked, node)
    turned: Any = _DenseSparseMatmul.apply(a, b)
    return turned


class _DenseSparseMatmul(Function):
    """`dense @ sparse`."""

    @staticmethod
    def forward(ctx, dense, tensor):
        ctx.save_for_backward(dense, tensor)
        return _multiply_sparse_dense(tensor._tl_array, tensor._tl_array.values, dense.mT, True).mT.contiguous()

    @staticmethod
    def backward(ctx, g):
        dense, tensor = ctx.saved_tensors
        to_dense = to_sparse = None
        if ctx.needs_input_grad[0]:
            to_dense = sparse_dense_matmul(tensor, g.mH, False).mH
        if ctx.needs_input_grad[1]:
            to_sparse = torch.matmul(dense.mH, g)
        return to_dense, to_sparse


_DenseSparseMatmul._backward_cls.__name__ = "MmBackward0"


def _sparse_sparse_matmul(a, b):
    """Multiply row by row: each element of `a` is multiplied by the row of `b` that its column index selects."""
    kind = a.layout
    if kind in BLOCK_LAYOUTS:
        raise RuntimeError(
            f"zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got {LAYOUT_NAMES[kind]}"
        )
    left, right = coalesce_coo(to_coo(a)), coalesce_coo(to_coo(b))
    one, two = left._tl_array, right._tl_array
    starts = compress_sorted(two.parts[0][0], b.shape[0])
    rows, columns = one.parts[0]
    which, there = concat_ranges(starts.index_select(0, columns), torch.diff(starts).index_select(0, columns))
    values = values_of(left).index_select(0, which) * values_of(right).index_select(0, there)
    index = torch.stack([rows.index_select(0, which), two.parts[0][1].index_select(0, there)])
    shape = (a.shape[0], b.shape[1])
    out = coalesce_coo(with_values(SparseData(torch.sparse_coo, shape, (index,), values), values))
    if kind is torch.sparse_coo:
        return with_values(SparseData(kind, shape, out._tl_array.parts, out._tl_array.values, True), values_of(out),
                           "SparseSparseMatmulBackward0")  # fmt: skip
    return coo_to_compressed(out, torch.sparse_csr)


class _SparseMm(Function):
    """The product of two sparse matrices; the gradients are products as well."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return _sparse_sparse_matmul(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (sparse_matmul(g, adjoint(b)) if needs[0] else None, sparse_matmul(adjoint(a), g) if needs[1] else None)


_SparseMm._backward_cls.__name__ = "MmBackward0"


def mm(input, mat2):
    """`torch.mm`."""
    return sparse_matmul(input, mat2)


def mv(input, vec):
    """`torch.mv`."""
    if is_sparse(vec):
        raise no_kernel_error("mv", vec)
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return sparse_dense_matmul(input, vec.unsqueeze(1), False, "MvBackward0").squeeze(1)


def bmm(input, mat2):
    """`torch.bmm`: a batch of sparse matrices times dense ones."""
    if not is_sparse(input):
        return bmm(_swap_last_dims(mat2), input.mT).mT
    if is_sparse(mat2):
        raise no_kernel_error("bmm", mat2)
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if input.ndim != 3 else "batch2 must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] but "
            f"got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    return sparse_dense_matmul(input, mat2, False, "BmmBackward0")


def _swap_last_dims(tensor):
    return torch.transpose(tensor, -1, -2)


def matmul(input, other):
    """`torch.matmul`, `@`."""
    if input.ndim == 2 and other.ndim == 1:
        if not is_sparse(other):
            return mv(input, other)
        return sparse_matmul(input, torch.unsqueeze(other, 1)).squeeze(1)
    if input.ndim == 2 and other.ndim == 2:
        return sparse_matmul(input, other)
    if input.ndim == 1 and other.ndim == 2:
        if not is_sparse(input):
            return mv(_swap_last_dims(other), input)
        return sparse_matmul(torch.unsqueeze(input, 0), other).squeeze(0)
    if input.ndim == 3 and other.ndim == 3:
        return bmm(input, other)
    if is_sparse(input) and not is_sparse(other) and input.ndim == 2:
        lead, last = other.shape[:-2], other.shape[-1]
        flat = other.movedim(-2, 0).reshape(other.shape[-2], -1)
        return sparse_matmul(input, flat).reshape(input.shape[0], *lead, last).movedim(0, -2)
    if is_sparse(other) and not is_sparse(input) and other.ndim == 2:
        flat = input.reshape(-1, input.shape[-1])
        return sparse_matmul(flat, other).reshape(*input.shape[:-1], other.shape[1])
    raise no_kernel_error("matmul", input if is_sparse(input) else other)


def scaled_sum(input, product, beta, alpha):
    """`beta * input + alpha * product`."""
    product = product if alpha == 1 else torch.mul(product, alpha)
    if beta == 0:
        return product
    input = input if beta == 1 else torch.mul(input, beta)
    if is_sparse(input) or is_sparse(product):
        return add_scaled(input, product)
    return torch.add(input, product)


def addmm(input, mat1, mat2, beta=1, alpha=1):
    """`torch.addmm`."""
    if not is_sparse(mat1) and not is_sparse(mat2):
        return scaled_sum(input, torch.mm(mat1, mat2), beta, alpha)
    return scaled_sum(input, sparse_matmul(mat1, mat2, False, "AddmmBackward0"), beta, alpha)


def addmv(input, mat, vec, beta=1, alpha=1):
    """`torch.addmv`."""
    return scaled_sum(input, mv(mat, vec), beta, alpha)


def linear(input, weight, bias=None):
    """`nn.functional.linear`."""
    out = matmul(input, _swap_last_dims(weight) if weight.ndim == 2 else weight)
    return out if bias is None else out + bias


# -- torch.sparse -------------------------------------------------------------------


def _autocast_operands(*tensors):
    """The tensors in the dtype that autocast has products in."""
    where = tensors[0].device.type
    if not torch.is_autocast_enabled(where):
        return tensors
    to = torch.get_autocast_dtype(where)
    return [t.to(to) if t.dtype.is_floating_point and t.dtype is not torch.float64 else t for t in tensors]


def sparse_mm(mat1, mat2, reduce=None):
    """`torch.sparse.mm`."""
    if reduce is not None:
        return _reduce_products(mat1, mat2, reduce)
    mat1, mat2 = _autocast_operands(mat1, mat2)
    if is_sparse(mat1):
        return sparse_matmul(mat1, mat2, True, "SparseAddmmBackward0")
    mat1, mat2 = mat2.transpose(-2, -1), mat1.transpose(-2, -1)
    out = sparse_matmul(mat1, mat2, True, "SparseAddmmBackward0") if is_sparse(mat1) else torch.mm(mat1, mat2)
    return out.transpose(-2, -1)


def _reduce_products(mat1, mat2, reduce: str):
    """The products of each row reduced otherwise than by a sum."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if mat1.layout is not torch.sparse_csr:
        raise no_kernel_error("_sparse_mm_reduce_impl", mat1)
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    _check_matmul_shapes("mm", mat1, mat2)
    if not mat1.dtype.is_floating_point:
        raise NotImplementedError(f"\"spmm_reduce_kernel\" not implemented for '{mat1.dtype.scalar_name}'")
    if reduce in ("amax", "amin"):
        return _extreme_products(mat1, mat2, reduce)
    out = sparse_dense_matmul(mat1, mat2, True, "SparseMmReduceImplBackward0")
    return out if reduce == "sum" else out / torch.diff(mat1._tl_array.parts[0]).clamp_min(1).unsqueeze(1)


def _extreme_products(mat1, mat2, reduce: str):
    """The largest or smallest product of each row. The first of several alone has a gradient."""
    (starts, columns), values, count = mat1._tl_array.parts, values_of(mat1), mat1._tl_array.nnz
    if not count:
        return mat2.new_zeros((mat1.shape[0], mat2.shape[1]))
    with recording(False):
        place = CALLBACKS.F._csr_mm_extremes(columns, starts, values, mat2, reduce == "amax")
        there, shape, place = place < count, place.shape, place.clamp_max(count - 1).reshape(-1)
    largest = values.index_select(0, place).reshape(shape) * mat2.gather(0, columns[place].reshape(shape))
    return torch.where(there, largest, 0)


def sparse_addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`torch.sparse.addmm`."""
    mat, mat1, mat2 = _autocast_operands(mat, mat1, mat2)
    if all(operand.layout is torch.strided for operand in (mat, mat1, mat2)):
        return torch.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)
    return scaled_sum(mat, sparse_matmul(mat1, mat2, True, "SparseAddmmBackward0"), beta, alpha)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`torch.sparse.sampled_addmm`."""
    if input.layout not in (torch.sparse_csr, torch.sparse_csc):
        raise no_kernel_error("sparse_sampled_addmm", input)
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.ndim < 2 or mat.ndim != input.ndim:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a matrix, got {mat.ndim}-D tensor")
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[-2]}x{mat1.shape[-1]} and "
            f"{mat2.shape[-2]}x{mat2.shape[-1]})"
        )
    for i, want, name in ((-2, mat1.shape[-2], "mat1.shape[-2]"), (-1, mat2.shape[-1], "mat2.shape[-1]")):
        if input.shape[i] != want:
            raise RuntimeError(f"sampled_addmm: self.shape[{i}] must match {name}")
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.dtype is not input.dtype:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} and input to have the same dtype, but got {mat.dtype.scalar_name} and "
                f"{input.dtype.scalar_name}"
            )
    product = _sampled_matmul(input._tl_array, mat1, mat2.mT)
    new = scaled_sum(values_of(input), product, beta, alpha)
    return with_values(input._tl_array.over(new), new, "SparseSampledAddmmBackward0")


def _require_coo(name: str, tensor) -> None:
    if tensor.layout is not torch.sparse_coo:
        raise no_kernel_error(name, tensor)


def _written(result, out):
    """The result, in the sparse tensor `out=` if there is one."""
    if out is None:
        return result
    _require_coo("copy_", out)
    return CALLBACKS.sparse("write_out")(result, out)


@parsed("smm")
def smm(input, mat2):
    """`torch.smm`: sparse times dense, as a sparse matrix with all elements specified."""
    empty = sparse_coo_tensor((input.shape[0], mat2.shape[1]), dtype=input.dtype, device=input.device)
    return sspaddmm(empty, input, mat2, beta=0)


@parsed("sspaddmm")
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """`torch.sspaddmm`: the rows of `mat1` are filled, and follow the elements of `input`."""
    if not input.is_sparse:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    _require_coo("sspaddmm", mat1)
    _check_matmul_shapes("sspaddmm", mat1, mat2)
    flat = coalesce_coo(mat1)
    rows = torch.unique(flat._tl_array.parts[0][0])
    product = _multiply_sparse_dense(flat._tl_array, flat._tl_array.values, mat2).index_select(0, rows) * alpha
    width = mat2.shape[1]
    index = torch.stack([rows.repeat_interleave(width), torch.arange(width, device=rows.device).repeat(rows.shape[0])])
    held = input._tl_array
    index = torch.cat([held.parts[0], index], 1)
    values = torch.cat([held.values * beta, product.reshape(-1)])
    return _written(wrap_sparse(SparseData(torch.sparse_coo, input.shape, (index,), values, False)), out)


@parsed("hspmm")
def hspmm(mat1, mat2, *, out=None):
    """`torch.hspmm`: sparse times dense, as a hybrid matrix with dense rows."""
    _require_coo("hspmm", mat1)
    _check_matmul_shapes("hspmm", mat1, mat2)
    flat = coalesce_coo(mat1)
    rows = torch.unique(flat._tl_array.parts[0][0])
    values = _multiply_sparse_dense(flat._tl_array, flat._tl_array.values, mat2).index_select(0, rows)
    shape = (mat1.shape[0], mat2.shape[1])
    return _written(wrap_sparse(SparseData(torch.sparse_coo, shape, (rows.unsqueeze(0),), values, True)), out)
