"""Batching rules of matrix and vector products."""

from __future__ import annotations

from ..._dispatch import F
from ..._dispatch.interceptors import stack
from ..._dispatch.meta_backend import shape_fn_error
from .._batched_tensor import batch_dim_first, is_batched_at
from .rule_helpers import RULES, align_ndim, composite_rule, promote_operands, rule, to_batch


def _check_example_shapes(op, values) -> None:
    """Raise the op's own error for mismatched example shapes."""
    if any(not item.batches for item in stack.items):
        return  # autocast makes the dtypes equal
    error = shape_fn_error(op, values)
    if error is not None:
        raise error


@rule("matmul", "mm", "bmm", "mv", "dot", kind="matmul")
def product_rule(level, op, values):
    """Compute a batched vector times an unbatched matrix as one matrix product, other cases as a batched product."""
    _check_example_shapes(op, values)
    a, b = promote_operands(op, values)
    left, right = is_batched_at(a, level), is_batched_at(b, level)
    if left and not right and a.ndim == 1 and b.ndim <= 2:
        return level.wrap(F.matmul(batch_dim_first(a), b))
    if right and not left and b.ndim == 1 and a.ndim <= 2:
        return level.wrap(F.matmul(batch_dim_first(b), a if a.ndim == 1 else F.transpose(a, 0, 1)))
    if left and not right and b.ndim <= 2:
        return level.wrap(F.matmul(batch_dim_first(a), b))
    row, column = a.ndim == 1, b.ndim == 1
    a, b = _as_matrix(level, a, row, -2), _as_matrix(level, b, column, -1)
    ndim = max(a[1], b[1])
    out = F.matmul(_to_ndim(a, ndim), _to_ndim(b, ndim))
    if column:
        out = F.squeeze(out, -1)
    if row:
        out = F.squeeze(out, -1 if column else -2)
    return level.wrap(out)


def _as_matrix(level, tensor, vector: bool, dim: int):
    """Return (tensor, dimensions of an example, True if batched), with vectors as matrices."""
    batched = is_batched_at(tensor, level)
    out = batch_dim_first(tensor) if batched else tensor
    if vector:
        out = F.unsqueeze(out, dim)
    return out, out.ndim - batched, batched


def _to_ndim(item, ndim: int):
    out, own, batched = item
    if batched:
        for _ in range(ndim - own):
            out = F.unsqueeze(out, 1)
    return out


@composite_rule("vdot")
def _vdot(F, input, other):
    return F.dot(F.conj(input), other)


def _scale_product(F, value, factor):
    if value.dtype.category < 2:  # kernels for integers
        factor = int(factor)
    return value if factor == 1 else F.mul(value, factor)


def _add_scaled(F, input, beta, product, alpha):
    product = _scale_product(F, product, alpha)
    return product if beta == 0 else F.add(_scale_product(F, input, beta), product)


@composite_rule("addmm")
def _addmm(F, input, mat1, mat2, beta, alpha):
    return _add_scaled(F, input, beta, F.mm(mat1, mat2), alpha)


@composite_rule("addmv")
def _addmv(F, input, mat, vec, beta, alpha):
    return _add_scaled(F, input, beta, F.mv(mat, vec), alpha)


@composite_rule("baddbmm")
def _baddbmm(F, input, batch1, batch2, beta, alpha):
    return _add_scaled(F, input, beta, F.bmm(batch1, batch2), alpha)


@composite_rule("addbmm")
def _addbmm(F, input, batch1, batch2, beta, alpha):
    return _add_scaled(F, input, beta, F.sum(F.bmm(batch1, batch2), 0), alpha)


@rule("linear", kind="matmul")
def _linear(level, op, values):
    x, weight, bias = values
    if is_batched_at(x, level) and not is_batched_at(weight, level) and not is_batched_at(bias, level):
        return level.wrap(F.linear(batch_dim_first(x), weight, bias))
    _check_example_shapes(op, values)
    from ..._dispatch.interceptors import ReenabledInterceptor

    with ReenabledInterceptor(level):
        out = F.matmul(x, F.transpose(weight, 0, 1) if weight.ndim == 2 else weight)
        return out if bias is None else F.add(out, bias)


@rule("_sdpa", kind="matmul")
def _attention(level, op, values):
    query, key, value, mask, *rest = values
    ndim = max(query.ndim, key.ndim, value.ndim)

    def spread(tensor):
        out = to_batch(level, tensor)
        for _ in range(ndim - (out.ndim - 1)):
            out = F.unsqueeze(out, 1)
        return out

    mask = mask if mask is None else align_ndim(level, mask, ndim)
    return level.wrap(F._sdpa(spread(query), spread(key), spread(value), mask, *rest))


__all__ = ["RULES"]
