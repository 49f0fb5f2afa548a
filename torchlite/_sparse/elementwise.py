"""Elementwise ops of sparse tensors."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from ..autograd.function import Function
from .differentiable_values import values_of, with_node_name, with_values
from .layout_conversion import (
    coalesce_coo,
    coo_to_compressed,
    densify,
    find_sorted,
    flatten_indices,
    index_sizes,
    to_coo,
    values_at,
)
from .sparse_tensor import BLOCK_LAYOUTS, LAYOUT_NAMES, SparseData, is_sparse, no_kernel_error, wrap_sparse

# Unary ops with f(0) = 0, which apply to the values.
ZERO_PRESERVING = frozenset((
    "abs", "angle", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv", "expm1",
    "floor", "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg",
    "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
))  # fmt: skip
# The linear ones of these: they do not need a coalesced tensor.
LINEAR = frozenset(("conj_physical",))
# The names in PyTorch's history.
_BACKWARD = {"square": "PowBackward0"}


def backward_name(name: str) -> str:
    """Return PyTorch's name of an op's backward node."""
    return _BACKWARD.get(name) or "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"


class _ToDenseDenseGrad(Function):
    """Convert a sparse tensor to dense, with a dense gradient."""

    @staticmethod
    def forward(ctx, tensor):
        return densify(tensor)

    @staticmethod
    def backward(ctx, g):
        return densify(g) if is_sparse(g) else g


def map_values(name: str, function, tensor):
    """Apply a function with f(0) = 0 to the values of a tensor."""
    if tensor.layout is torch.sparse_coo and name not in LINEAR:
        tensor = coalesce_coo(tensor)
    new = function(values_of(tensor))
    return with_values(tensor._tl_array.over(new), new, backward_name(name))


def _promote_values(a, b):
    """Return the values of two tensors in one dtype."""
    left, right = values_of(a), values_of(b)
    to = torch.promote_types(left.dtype, right.dtype)
    return left.to(to), right.to(to)


def add_scaled(a, b, scale=1):
    """Return `a + scale * b`, with one or two sparse operands."""
    if not (is_sparse(a) and is_sparse(b)):
        if a.shape != b.shape:
            dense, sparse = (b, a) if is_sparse(a) else (a, b)
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size {list(dense.shape)} while "
                f"other has size {list(sparse.shape)} (FYI: op2-sparse addition does not currently support "
                "broadcasting)"
            )
        one, two = (_ToDenseDenseGrad.apply(x) if is_sparse(x) else x for x in (a, b))
        return torch.sub(one, two) if scale == -1 else torch.add(one, two, alpha=scale)
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
        )
    return with_node_name(_AddSparse, "SubBackward0" if scale == -1 else "AddBackward0").apply(a, b, scale)


class _AddSparse(Function):
    """The sum of two sparse tensors; the gradient passes through unchanged."""

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.scale = scale
        return _add_data(a, b, scale)

    @staticmethod
    def backward(ctx, g):
        needs = ctx.needs_input_grad
        return g if needs[0] else None, (g if ctx.scale == 1 else torch.mul(g, ctx.scale)) if needs[1] else None, None


def _add_data(a, b, scale):
    """`a + scale * b`, without history."""
    one, two = a._tl_array, b._tl_array
    if one.layout is not two.layout:
        return _add_data(to_coo(a), to_coo(b), scale)
    left, right = _promote_values(a, b)
    right = right if scale == 1 else right * scale
    if one.same_places(two) or one.layout is not torch.sparse_coo and _have_equal_indices(one, two):
        return wrap_sparse(one.over(left + right))
    if one.layout is not torch.sparse_coo:
        total = coalesce_coo(_add_data(to_coo(a), to_coo(b), scale))
        return coo_to_compressed(total, one.layout, one.blocksize if one.layout in BLOCK_LAYOUTS else None)
    if one.sparse_dim != two.sparse_dim:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, but "
            f"{one.sparse_dim} != {two.sparse_dim}"
        )
    index = torch.cat([one.parts[0], two.parts[0]], 1)
    out = wrap_sparse(SparseData(one.layout, one.shape, (index,), torch.cat([left, right])))
    if one.coalesced and two.coalesced or index.shape[1] > 16 * max(math.prod(index_sizes(one)), 1):
        return coalesce_coo(out)
    return out


def _have_equal_indices(one: SparseData, two: SparseData) -> bool:
    return all(a.shape == b.shape and bool((a == b).all()) for a, b in zip(one.parts, two.parts, strict=True))


def add(input, other, alpha=1):
    """`a + alpha * b`."""
    if is_sparse(input) and not is_sparse(other):
        if input.layout is torch.sparse_coo:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if not isinstance(other, torch.Tensor):
            other = torch.tensor(other)
    elif not isinstance(input, torch.Tensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return add_scaled(input, other, alpha)


def sub(input, other):
    """`a - b`."""
    if is_sparse(input) and input.layout is torch.sparse_coo and not is_sparse(other):
        raise RuntimeError("sub(sparse, dense) is not supported. Use sub(dense, sparse) instead.")
    if not isinstance(input, torch.Tensor):
        raise no_kernel_error("rsub.Scalar", other)
    if not isinstance(other, torch.Tensor):
        other = torch.tensor(other)
    return add_scaled(input, other, -1)


class _LinearMap(Function):
    """A linear function of a sparse tensor's values; the gradient passes through, sparse or dense."""

    @staticmethod
    def forward(ctx, tensor, function, back):
        ctx.back = back
        return wrap_sparse(tensor._tl_array.over(function(tensor._tl_array.values.detach())))

    @staticmethod
    def backward(ctx, g):
        return ctx.back(g), None, None


class _Mul(Function):
    """A product with one or two sparse factors. As in PyTorch a factor's gradient is the other factor times the
    gradient, sparse if one of these is.
    """

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return _multiply_data(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return tuple(
            _sum_to_size(torch.mul(g, other.conj()), own) if needed else None
            for own, other, needed in ((a, b, ctx.needs_input_grad[0]), (b, a, ctx.needs_input_grad[1]))
        )


_Mul._backward_cls.__name__ = "MulBackward0"


def _sum_to_size(g, tensor):
    """Reduce a gradient to the shape of an operand that was broadcast."""
    return g if g.shape == tensor.shape else densify(g).sum_to_size(tensor.shape)


def _is_number(value) -> bool:
    return not isinstance(value, torch.Tensor) or not is_sparse(value) and value.ndim == 0


def mul(input, other):
    """Return `a * b`: the result is zero where either operand is."""
    if not is_sparse(input):
        input, other = other, input
    if not _is_number(other):
        return _Mul.apply(input, other)
    if getattr(other, "_tl_node", None) is not None:
        new = torch.mul(values_of(input), other)
        return with_values(input._tl_array.over(new), new, "MulBackward0")
    factor = other.conj() if isinstance(other, torch.Tensor) else other.conjugate()
    return with_node_name(_LinearMap, "MulBackward0").apply(
        input, lambda values: torch.mul(values, other), lambda g: torch.mul(g, factor)
    )


def neg(input):
    """`-a`."""
    return with_node_name(_LinearMap, "NegBackward0").apply(input, torch.neg, torch.neg)


def _multiply_data(input, other):
    """The product of two tensors, without history."""
    if is_sparse(input) and is_sparse(other):
        return _mul_intersection(input, other)
    input, other = (input, other) if is_sparse(input) else (other, input)
    input = broadcast(input, torch.broadcast_shapes(tuple(input.shape), tuple(other.shape)))
    return wrap_sparse(
        input._tl_array.over(torch.mul(input._tl_array.values, values_at(other.expand(input.shape), input._tl_array)))
    )


def broadcast(tensor, shape):
    """Broadcast a COO tensor to a larger shape: dimensions of size one are repeated, and new ones come first."""
    if tuple(shape) == tuple(tensor.shape):
        return tensor
    if tensor.layout is not torch.sparse_coo:
        raise RuntimeError(f"expand is unsupported for {LAYOUT_NAMES[tensor.layout]} tensors")
    while tensor.ndim < len(shape):
        tensor = torch.unsqueeze(tensor, 0)
    for dim, (have, want) in enumerate(zip(tensor.shape, shape, strict=True)):
        if have != want:
            once = torch.zeros(want, dtype=torch.int64, device=tensor.device)
            tensor = torch.index_select(tensor, dim, once)
    return tensor


def _mul_intersection(a, b):
    """The product of two sparse tensors at the indices that both specify."""
    alike = [(x._tl_array.sparse_dim, x._tl_array.shape[: x._tl_array.sparse_dim + x._tl_array.batch]) for x in (a, b)]
    if a.ndim != b.ndim or a.layout is b.layout and alike[0] != alike[1] or a.shape != b.shape:
        raise RuntimeError(
            f"sparse_binary_op_intersection_{a.device.type}(): expects sparse inputs with equal dimensionality, number "
            "of sparse dimensions, and shape of sparse dimensions"
        )
    if a.layout is not b.layout:
        common = _mul_intersection(to_coo(a), to_coo(b))
        return common if a.layout is torch.sparse_coo else coo_to_compressed(common, a.layout, a._tl_array.blocksize)
    if a.layout is not torch.sparse_coo:
        if a._tl_array.same_places(b._tl_array) or _have_equal_indices(a._tl_array, b._tl_array):
            left, right = _promote_values(a, b)
            return with_values(a._tl_array.over(left * right), left * right, "MulBackward0")
        return coo_to_compressed(_mul_intersection(to_coo(a), to_coo(b)), a.layout)
    a, b = coalesce_coo(a), coalesce_coo(b)
    one, two = a._tl_array, b._tl_array
    left, right = _promote_values(a, b)
    if one.same_places(two):
        new = left * right
        return with_values(one.over(new), new, "MulBackward0")
    index = one.parts[0]
    if two.nnz and one.sparse_dim == two.sparse_dim:
        found, there = find_sorted(
            flatten_indices(two.parts[0], index_sizes(two)), flatten_indices(index, index_sizes(one))
        )
        kept = there.nonzero().reshape(-1)
        new = left.index_select(0, kept) * right.index_select(0, found.index_select(0, kept))
        index = index.index_select(1, kept)
    else:
        new, index = left[:0] * right[:0], index[:, :0]
    return with_values(SparseData(one.layout, one.shape, (index,), new, True), new, "MulBackward0")


def div(input, other, function: Any = None, name: str = "DivBackward0"):
    """`a / b` of a sparse tensor and a number."""
    if not is_sparse(input):
        if not isinstance(input, torch.Tensor):
            raise no_kernel_error("reciprocal", other)
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for "
            "divisor)" if input.layout is other.layout else f"div: expected both tensors to be sparse, but got "
            f"{LAYOUT_NAMES[input.layout]} and {LAYOUT_NAMES[other.layout]}"
        )  # fmt: skip
    if not _is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for "
            "divisor)"
        )
    if function is None and getattr(other, "_tl_node", None) is None:
        divisor = other.conj() if isinstance(other, torch.Tensor) else other.conjugate()
        return with_node_name(_LinearMap, "DivBackward0").apply(
            input, lambda values: torch.div(values, other), lambda g: torch.div(g, divisor)
        )
    if function is not None and input.layout is torch.sparse_coo:
        input = coalesce_coo(input)
    new = (function or torch.div)(values_of(input), other)
    return with_values(input._tl_array.over(new), new, name)


def power(input, exponent):
    """`a ** number`."""
    if not is_sparse(input) or not _is_number(exponent):
        raise no_kernel_error("pow.Tensor_Tensor" if isinstance(input, torch.Tensor) else "pow.Scalar", exponent)
    if isinstance(exponent, torch.Tensor):
        raise no_kernel_error("pow.Tensor_Tensor", input)
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    return map_values("pow", lambda values: torch.pow(values, exponent), input)
