"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

import math

import torchlite as torch

from .._dispatch.shapes import wrap_dim
from ..autograd.function import Function
from .differentiable_values import values_of, with_values
from .layout_conversion import coalesce_coo, coo_to_compressed, flatten_indices, sum_by_index, to_coo
from .sparse_tensor import SparseData, is_sparse, no_kernel_error


class _Sum(Function):
    """The sum over dimensions that include all sparse ones, with a dense gradient."""

    @staticmethod
    def forward(ctx, tensor, dims, dtype):
        ctx.shape, ctx.dims = tensor.shape, dims
        data = tensor._tl_array
        if len(dims) == data.ndim:
            return data.values.sum(dtype=dtype)
        return data.values.sum([0, *(d - data.sparse_dim + 1 for d in dims if d >= data.sparse_dim)], dtype=dtype)

    @staticmethod
    def backward(ctx, g):
        for dim in ctx.dims:
            g = g.unsqueeze(dim)
        return g.expand(ctx.shape), None, None


_Sum._backward_cls.__name__ = "SumBackward0"


def _normalize_dims(dim, ndim: int) -> list[int]:
    dims = sorted({wrap_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)})
    if not isinstance(dim, int) and len(dims) != len(tuple(dim)):
        repeated = next(d for d in dims if [wrap_dim(e, ndim) for e in dim].count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return dims


def sum_op(input, dim=None, keepdim=False, dtype=None):
    """`torch.sum`."""
    if dim is None or not isinstance(dim, int) and len(dim) == 0 and input.layout is torch.sparse_coo:
        return _Sum.apply(input, list(range(input.ndim)), dtype)
    if input.layout is not torch.sparse_coo:
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        if input.layout is not torch.sparse_csr or input._tl_array.batch or input._tl_array.dense_dim:
            raise no_kernel_error("sum.dim_IntList", input)
        out = _sum_keepdim(to_coo(input), _normalize_dims(dim, input.ndim), dtype)
        return coo_to_compressed(out, torch.sparse_csr)
    dims = _normalize_dims(dim, input.ndim)
    if keepdim:
        return _sum_keepdim(input, dims, dtype)
    if set(range(input._tl_array.sparse_dim)) <= set(dims):
        return _Sum.apply(input, dims, dtype)
    return _sum_dims(input, dims, dtype or _accumulate_dtype(input.dtype), "SumBackward1")


def _sum_keepdim(input, dims, dtype):
    """Sum over dimensions with keepdim."""
    data, values = input._tl_array, values_of(input)
    cut, index = data.sparse_dim, data.parts[0]
    keep = torch.tensor([[0 if d in dims else 1] for d in range(cut)], device=index.device, dtype=torch.int64)
    inner = [d - cut + 1 for d in dims if d >= cut]
    values = (
        values.sum(inner, keepdim=True, dtype=dtype) if inner else values.to(dtype or _accumulate_dtype(values.dtype))
    )
    shape = [1 if d in dims else n for d, n in enumerate(data.shape)]
    return coalesce_coo(with_values(SparseData(data.layout, shape, (index * keep.reshape(cut, 1),), values), values))


def _accumulate_dtype(dtype):
    """Return the dtype in which PyTorch accumulates sums of a dtype."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _sum_dims(input, dims, dtype, name: str):
    """Sum over dimensions; the result is dense if no sparse dimension remains."""
    data, values = input._tl_array, values_of(input)
    cut = data.sparse_dim
    inner = [d - cut + 1 for d in dims if d >= cut]
    values = values.sum(inner, dtype=dtype) if inner else values if dtype is None else values.to(dtype)
    rows = [d for d in range(cut) if d not in dims]
    shape = [n for d, n in enumerate(data.shape) if d not in dims]
    if not rows:
        return values.sum(0)
    if len(rows) == cut:
        return with_values(SparseData(data.layout, shape, data.parts, values, data.coalesced), values, name)
    index = data.parts[0].index_select(0, torch.tensor(rows, device=values.device))
    out = coalesce_coo(with_values(SparseData(data.layout, shape, (index,), values), values))
    return with_values(out._tl_array, values_of(out), name)


def sparse_sum(input, dim=None, dtype=None):
    """`torch.sparse.sum`."""
    if not is_sparse(input) or input.layout is not torch.sparse_coo:
        from .sparse_tensor import LAYOUT_NAMES

        if dim is not None:
            raise no_kernel_error("_indices", input)
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {LAYOUT_NAMES[input.layout]}")
    if dim is None:
        return values_of(coalesce_coo(input)).sum(dtype=dtype)
    if not isinstance(dim, int) and not len(dim):
        return with_values(coalesce_coo(input)._tl_array, values_of(coalesce_coo(input)), "SparseSumBackward0")
    return _sum_dims(input, _normalize_dims(dim, input.ndim), dtype, "SparseSumBackward0")


def any_op(input, dim=None, keepdim=False):
    """`torch.any`."""
    if dim is not None:
        raise no_kernel_error("any.out", input)
    return input._tl_array.values.any()


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """`torch.norm` of all elements."""
    if input.layout is not torch.sparse_coo:
        raise no_kernel_error("norm.out", input)
    if dim is not None and list((dim,) if isinstance(dim, int) else dim) != list(range(input.ndim)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
                           "contain all dimensions of the input")  # fmt: skip
    values = values_of(coalesce_coo(input)).reshape(-1)
    return torch.norm(values, 2 if p in ("fro", None) else p, dtype=dtype)


def softmax(input, dim, dtype=None, *, log: bool = False):
    """`torch.sparse.softmax` and `log_softmax`: elements that are not specified count as minus infinity."""
    name = "_sparse_log_softmax" if log else "_sparse_softmax"
    if not is_sparse(input) or input.layout is not torch.sparse_coo:
        raise no_kernel_error(name, input)
    tensor = coalesce_coo(input)
    data, values = tensor._tl_array, values_of(tensor)
    values = values if dtype is None else values.to(dtype)
    if not values.dtype.is_floating_point:
        raise NotImplementedError(f"\"softmax\" not implemented for '{values.dtype.scalar_name}'")
    dim, cut = wrap_dim(dim, data.ndim), data.sparse_dim
    if dim >= cut:
        function = torch.log_softmax if log else torch.softmax
        new = function(values, dim - cut + 1)
    else:
        new = _softmax_by_group(values, data, dim, log)
    shown = "SparseLogSoftmaxBackward0" if log else "SparseSoftmaxBackward0"
    return with_values(data.over(new), new, shown)


def _softmax_by_group(values, data: SparseData, dim: int, log: bool):
    """Softmax among the elements with equal other indices."""
    others = [d for d in range(data.sparse_dim) if d != dim]
    if not data.nnz:
        return values
    index = data.parts[0].index_select(0, torch.tensor(others, dtype=torch.int64, device=values.device))
    found, group = torch.unique(flatten_indices(index, [data.shape[d] for d in others]), return_inverse=True)
    count = found.shape[0]
    shape = (count, *values.shape[1:])
    where = group.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    largest = values.detach().new_full(shape, -math.inf).scatter_reduce(0, where, values.detach(), "amax")
    shifted = values - largest.index_select(0, group)
    powers = torch.exp(shifted)
    total = sum_by_index(powers, count, group).index_select(0, group)
    return shifted - torch.log(total) if log else powers / total


__all__ = ["any_op", "norm", "softmax", "sparse_sum", "sum_op"]
