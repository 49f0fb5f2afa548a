"""Dispatch of ops on sparse tensors: one table by op name. A rule takes the values of the record's parameters, in
order. A composite op without a rule runs as its parts. A primitive op without a rule raises PyTorch's error for sparse
tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import REGISTRY, autograd_graph, call, in_place_calls
from .._dispatch.autograd_graph import bump_version, gradient_edge
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import LEAF, MODE, recording
from .._dispatch.op_record import POINTWISE
from .._ops._gradient_helpers import to_named_tuple
from . import elementwise, matmul_ops, reductions, shape_ops
from .accessors import resize_as_
from .constructors import _make_empty_coo, empty
from .differentiable_values import values_of, with_values
from .elementwise import LINEAR, ZERO_PRESERVING, map_values
from .layout_conversion import flatten_indices, index_sizes, sparse_to, to_coo, to_dense
from .sparse_tensor import BLOCK_LAYOUTS, LAYOUT_NAMES, ROW_COMPRESSED, is_sparse, no_kernel_error, wrap_sparse

RULES: dict[str, Callable[..., Any]] = {
    "add": elementwise.add,
    "add_alpha": elementwise.add,
    "sub": elementwise.sub,
    "mul": elementwise.mul,
    "div": elementwise.div,
    "floor_divide": lambda a, b: elementwise.div(a, b, torch.floor_divide),
    "_floor_divide": lambda a, b: elementwise.div(a, b, lambda x, y: torch.div(x, y, rounding_mode="floor")),
    "_trunc_divide": lambda a, b: elementwise.div(a, b, lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    "pow": elementwise.power,
    "mm": matmul_ops.mm,
    "mv": matmul_ops.mv,
    "bmm": matmul_ops.bmm,
    "matmul": matmul_ops.matmul,
    "addmm": matmul_ops.addmm,
    "addmv": matmul_ops.addmv,
    "linear": matmul_ops.linear,
    "sum": reductions.sum_op,
    "any": reductions.any_op,
    "norm": reductions.norm,
    "dist": lambda input, other, p: reductions.norm(torch.sub(input, other), p),
    "real": lambda input: map_values("real", torch.real, input) if input.is_complex() else input,
    "neg": elementwise.neg,
    "resize_as_": lambda input, other, memory_format: resize_as_(input, other),
    "permute": shape_ops.permute,
    "transpose": shape_ops.transpose,
    "t": shape_ops.t,
    "select": shape_ops.select,
    "unbind": shape_ops.unbind,
    "unsqueeze": shape_ops.unsqueeze,
    "squeeze": shape_ops.squeeze,
    "narrow_copy": shape_ops.narrow_copy,
    "index_select": shape_ops.index_select,
    "cat": shape_ops.cat,
    "stack": shape_ops.stack,
    "softmax": lambda input, dim, dtype: reductions.softmax(input, dim, dtype),
    "log_softmax": lambda input, dim, dtype: reductions.softmax(input, dim, dtype, log=True),
}
# The ops that PyTorch names otherwise in its errors.
_ATEN = {
    "_view": "view", "gt": "gt.Scalar", "lt": "lt.Scalar", "ge": "ge.Scalar", "le": "le.Scalar", "eq": "eq.Tensor",
    "ne": "ne.Scalar", "_setitem": "index_put_", "_index": "index.Tensor", "mean": "mean.dim", "_slice": "as_strided",
    "_vector_norm_core": "linalg_vector_norm", "_clamp_scalars": "clamp", "_clamp_tensors": "clamp.Tensor",
    "_nonzero_indices": "nonzero", "isfinite": "ne.Scalar", "isclose": "eq.Tensor", "is_set_to": "is_set_to",
    "_choose": "where.self",    "_std_correction": "std.correction", "_var_correction": "var.correction",
    "rand_like": "uniform_", "randn_like": "normal_", "allclose": "eq.Tensor"
}  # fmt: skip


def register_rule(name: str):
    """Register the rule of an op."""

    def declare(function):
        RULES[name] = function
        return function

    return declare


def _implement_by_values(name: str) -> None:
    def map_op_over_values(input, *rest):
        params = zip(REGISTRY[name].params[1:], rest, strict=False)
        named = {param.name: value for param, value in params if param.kwonly}  # the last ones
        plain = rest[: len(rest) - len(named)]
        return map_values(name, lambda values: getattr(CALLBACKS.F, name)(values, *plain, **named), input)

    RULES[name] = map_op_over_values


for _name in ZERO_PRESERVING:
    _implement_by_values(_name)


@register_rule("clone")
def clone(input, memory_format=None):
    """A copy of all parts."""
    values = torch.clone(values_of(input))
    data = input._tl_array.mapped(torch.clone)
    return with_values(data.over(values), values, "CloneBackward0")


@register_rule("to")
def to(input, dtype):
    """Another dtype."""
    values = CALLBACKS.F.to(values_of(input), dtype)
    return with_values(input._tl_array.over(values), values, "ToCopyBackward0")


@register_rule("_move")
def move(input, where):
    """Another device."""
    return sparse_to(input, where)


@register_rule("_conj")
def conj(input):
    """The conjugate."""
    return map_values("conj_physical", torch.conj_physical, input) if input.is_complex() else input


for _name in ("resolve_conj", "resolve_neg", "alias", "positive"):
    RULES[_name] = lambda input: input


@register_rule("imag")
def imag(input):
    """The imaginary part."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return map_values("imag", torch.imag, input)


@register_rule("triangular_solve")
def triangular_solve(b, A, upper, transpose, unitriangular):
    """Solve with a triangle in the CSR or BSR layout, as with a dense one."""
    if is_sparse(b) or A.layout is torch.sparse_coo:
        raise no_kernel_error("triangular_solve", b if is_sparse(b) else A)
    if A.layout not in ROW_COMPRESSED:
        raise ValueError("triangular_solve: unsupported sparse layout.")
    solution = torch.triangular_solve(b, to_dense(A), upper, transpose, unitriangular)[0]
    return to_named_tuple("triangular_solve", (solution, solution.new_empty(0)))


@register_rule("contiguous")
def contiguous(input, memory_format=None):
    """Raise PyTorch's error."""
    raise RuntimeError("unsupported memory format option Contiguous")


@register_rule("expand")
def expand(input, size):
    """Raise PyTorch's error."""
    raise RuntimeError(f"expand is unsupported for {LAYOUT_NAMES[input.layout]} tensors")


RULES["repeat"] = expand


@register_rule("reshape")
def reshape(input, size):
    """Raise PyTorch's error."""
    if input.layout is torch.sparse_coo:
        raise RuntimeError("reshape is not implemented for sparse tensors")
    return input.is_contiguous()


def _check_like(input, layout) -> None:
    if layout is torch.strided and input.layout is not torch.sparse_coo:
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {LAYOUT_NAMES[input.layout]} but you "
            "requested Strided)"
        )


def _make_empty_like(input, dtype, layout, device, requires_grad, size=None):
    layout = input.layout if layout is None else layout
    if size is None:
        _check_like(input, layout)
    size = tuple(input.shape) if size is None else size
    dtype, device = dtype or input.dtype, device or input.device
    if layout is torch.strided:
        return torch.zeros(size, dtype=dtype, device=device, requires_grad=requires_grad)
    if layout is torch.sparse_coo and size == tuple(input.shape):
        return _make_empty_coo(size, dtype, device, requires_grad, input._tl_array.dense_dim)
    blocks = input._tl_array.blocksize if layout in BLOCK_LAYOUTS else None
    kind = torch.int64 if input.layout is torch.sparse_coo else input._tl_array.parts[0].dtype
    return empty(size, dtype, device, layout, requires_grad, blocks, kind)


@register_rule("zeros_like")
def zeros_like(input, dtype, layout, device, pin_memory, requires_grad, memory_format):
    """Return a sparse tensor without specified elements."""
    return _make_empty_like(input, dtype, layout, device, requires_grad)


RULES["empty_like"] = zeros_like


@register_rule("_zeros_like")
def make_empty_like(input):
    """Return a sparse tensor without specified elements."""
    return _make_empty_like(input, None, None, None, False)


@register_rule("new_zeros")
def new_zeros(input, size, dtype, device, requires_grad, layout, pin_memory):
    """Return a sparse tensor of another size, without specified elements."""
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return _make_empty_like(input, dtype, layout, device, requires_grad, tuple(size))


RULES["new_empty"] = new_zeros


def _refuse_fill(input, *rest):
    raise no_kernel_error("fill_.Scalar", input)


for _name in ("new_ones", "new_full"):
    RULES[_name] = _refuse_fill


@register_rule("full_like")
def full_like(input, value, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, form=None):
    """Return a dense tensor if `layout` is strided; else a compressed tensor with `value` at the specified places."""
    _check_like(input, layout)
    dtype, device = dtype or input.dtype, device or input.device
    if layout is torch.strided:
        return torch.full(input.shape, value, dtype=dtype, device=device, requires_grad=requires_grad)
    if input.layout is torch.sparse_coo or layout not in (None, input.layout):
        _refuse_fill(input)
    data = input._tl_array.mapped(lambda part: part.to(device))
    out = wrap_sparse(data.over(torch.full_like(data.values, value, dtype=dtype)))
    return out.requires_grad_(requires_grad)


@register_rule("ones_like")
def ones_like(input, *how):
    """As `full_like`."""
    return full_like(input, 1, *how)


@register_rule("fill_")
def fill_(input, value):
    """The specified elements of a compressed tensor."""
    _check_leaf(input)
    return _write_into(input, full_like(input, value))


# -- in place ---------------------------------------------------------------------------


def _write_into(target, result):
    """Copy the elements and the history of another tensor into a tensor."""
    if target._tl_node is LEAF and MODE.grad:
        autograd_graph.check_in_place_autograd(target)
    target._tl_array, target._tl_kernels = result._tl_array, result._tl_kernels
    if MODE.grad and (result._tl_node is not None or target._tl_node is not LEAF):
        target._tl_node = result._tl_node
    bump_version(target)
    return target


def _check_leaf(target) -> None:
    if MODE.grad and target._tl_node is LEAF:
        autograd_graph.check_in_place_autograd(target)


@register_rule("zero_")
def zero_(input):
    """Remove all specified elements."""
    _check_leaf(input)
    return _write_into(input, _make_empty_like(input, None, None, None, False))


@register_rule("copy_")
def copy_(input, src, non_blocking=False):
    """The elements of another tensor."""
    _check_leaf(input)
    if not is_sparse(src) or not is_sparse(input):
        if is_sparse(input) is is_sparse(src) or not isinstance(src, torch.Tensor):
            raise no_kernel_error("copy_", input)
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {src.type()}"
        )
    if input.layout is not src.layout:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{input.layout.name} and src layout is {src.layout.name}"
        )
    return _write_into(input, clone(sparse_to(src, device=input.device, dtype=input.dtype)))


@register_rule("detach")
def detach(input):
    """Return the tensor without history."""
    return input.detach()


@register_rule("t_")
def t_(input):
    """`t` in place."""
    return _write_into(input, shape_ops.t(input))


@register_rule("transpose_")
def transpose_(input, dim0, dim1):
    """`transpose` in place."""
    return _write_into(input, shape_ops.transpose(input, dim0, dim1))


def run_op(op, values: list):
    """Run an op with a sparse operand. NotImplemented for a composite op, which runs as its parts."""
    found = RULES.get(op.name)
    if found is not None:
        return found(*values)
    if op.is_implicit and op.name not in _REFUSED:
        return NotImplemented
    first = next(v for v in _iterate_flattened(values) if is_sparse(v))
    if first.layout is not torch.sparse_coo and op.tags & POINTWISE:
        raise RuntimeError(f"unsupported tensor layout: {LAYOUT_NAMES[first.layout]}")
    raise no_kernel_error(_ATEN.get(op.name, op.name), first)


# Composite ops that PyTorch refuses, with its message.
_REFUSED = frozenset(
    ("max", "min", "clamp", "equal", "is_set_to", "rand_like", "randn_like", "allclose", "trace", "resize_")
)


def _iterate_flattened(values):
    for value in values:
        if value.__class__ in (list, tuple):
            yield from _iterate_flattened(value)
        else:
            yield value


def run_in_place(op, values: list):
    """`self.op_(...)` with a sparse tensor among the values."""
    target, rest = values[0], values[1:]
    if not is_sparse(target):
        return _run_on_dense_target(op, target, rest)
    _check_leaf(target)
    if op.name == "copy_":
        return copy_(target, *rest)
    if op.name == "pow":
        raise no_kernel_error("pow_.Scalar", target)
    if op.name in ZERO_PRESERVING - LINEAR and target.layout is torch.sparse_coo and not target._tl_array.coalesced:
        raise RuntimeError(f"{op.name}_ requires coalesced input")
    before = wrap_sparse(target._tl_array)
    if target._tl_node is not None and target._tl_node is not LEAF:
        before._tl_node = gradient_edge(target)
    result = call.execute(op, [before, *rest])
    if not is_sparse(result) or result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype.scalar_name} can't be cast to the desired output type "
            f"{target.dtype.scalar_name}"
        )
    return _write_into(target, result if result.dtype is target.dtype else to(result, target.dtype))


def _run_on_dense_target(op, target, rest):
    """Run an in-place op on a dense tensor with a sparse operand, which changes the specified places only."""
    other: Any = rest[0] if rest else None
    wants = MODE.grad and (target._tl_node is not None or any(getattr(v, "_tl_node", None) is not None for v in rest))
    if wants:
        autograd_graph.check_in_place_autograd(target)
    elif op.name in ("add", "sub", "add_alpha", "sub_alpha") and is_sparse(other) and other.dtype is target.dtype:
        if target.shape == other.shape and target.is_contiguous() and target.dtype is not torch.bool:
            scale = (-1 if "sub" in op.name else 1) * (rest[1] if len(rest) > 1 else 1)
            return _scatter_add(target, to_coo(other)._tl_array, scale)
    before = in_place_calls._shallow_copy(target) if wants else target
    with recording(wants):
        result = call.execute(op, [before, *rest])
    if is_sparse(result):
        result = to_dense(result)
    return in_place_calls.write_result_in_place(op, target, result, before)


def _scatter_add(target, data, scale):
    """Compute `target += scale * sparse` at the specified elements."""
    sizes = index_sizes(data)
    flat = target.detach().view(-1, *data.shape[len(sizes) :]) if sizes else target.detach().unsqueeze(0)
    flat.index_add_(0, flatten_indices(data.parts[0], sizes), data.values, alpha=scale)
    bump_version(target)
    return target


def write_out(result, out):
    """Write the result to `out=` if it or the result is sparse."""
    if is_sparse(result) != is_sparse(out):
        if is_sparse(out) or not isinstance(out, torch.Tensor):
            raise no_kernel_error("copy_", out)
        result = to_dense(result)
        out.resize_(result.shape)
        return out.copy_(result)
    out._tl_array = (result if result.dtype is out.dtype else to(result, out.dtype))._tl_array
    bump_version(out)
    return out
