"""Matrix products and linear layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite._dispatch.shape_and_value_checks import (
    check_batched_matrices,
    check_matmul_dtypes,
    check_ndims,
    split_at_ends,
)
from torchlite_backends.kernel_sources.dot import DOT
from torchlite_backends.kernel_sources.gemm import EPILOGUES

from ..array_ops.creation import _new_zeros
from ..array_ops.pointwise import KERNELS as POINTWISE
from ..array_ops.rearrange import cat, stack
from ..array_ops.reduce import reduce
from ..core.array import Array, empty, make_view, row_major_layout
from ..core.broadcasting import broadcast_shape, broadcast_steps, collapse_dims
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.host_transfer import to_numpy
from ..core.views import broadcast_view, reshape, select, slice_view, transpose
from .gemm import GemmPlan, GemmShape, plan_gemm

# The shape and the steps of an operand.
_ShapeAndSteps = tuple[tuple[int, ...], tuple[int, ...]]
# Operand of a product.
_NEITHER, _FIRST, _SECOND = (False, False), (True, False), (False, True)


class _MatmulPlan(NamedTuple):
    """Product of known shapes and strides: its result's shape and plan, or the operands to copy first.

    The plan is None if there is nothing to sum or store.
    """

    shape: tuple[int, ...]
    plan: GemmPlan | None
    copy: str = ""
    few_terms: bool = False  # one term or none: a sum that starts with 0 would lose -0


def _pad_steps(steps, count: int):
    """Return the last `count` strides, padded with zeros in front."""
    return tuple([0] * (count - len(steps)) + list(steps))


def _compute_result_and_gemm_shape(
    a: _ShapeAndSteps, b: _ShapeAndSteps, d: _ShapeAndSteps | None
) -> tuple[tuple[int, ...], GemmShape | None]:
    """Return the result's shape and the GemmShape of `a` (..., m, k) and `b` (..., k, n), each (shape, strides), plus
    d.

    The latter is None if two batch dimensions do not suffice.
    """
    (a_shape, a_steps), (b_shape, b_steps) = a, b
    m, k, n = a_shape[-2], a_shape[-1], b_shape[-1]
    if b_shape[-2] != k:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {b_shape[-2]}x{n})")
    lead = broadcast_shape((a_shape[:-2], b_shape[:-2])) if len(a_shape) > 2 or len(b_shape) > 2 else ()
    shape = (*lead, m, n)
    _, c_steps = row_major_layout(shape)
    if d is not None and (len(d[0]) > len(shape) or broadcast_shape((d[0], shape)) != shape):
        raise RuntimeError(f"what is added, {d[0]}, cannot be expanded to a product of {shape}")
    d_steps = (0,) * len(shape) if d is None else broadcast_steps(d[0], d[1], shape)
    a_lead, b_lead = (
        broadcast_steps(a_shape[:-2], a_steps[:-2], lead),
        broadcast_steps(b_shape[:-2], b_steps[:-2], lead),
    )
    if not lead:
        return shape, GemmShape(m, n, k, a_steps, b_steps, c_steps, d_steps)
    if not any(b_lead):  # one matrix for the full batch: batch dimensions become rows
        counts, (ra, rc, rd) = collapse_dims((*lead, m), (*a_lead, a_steps[-2]), c_steps[:-1], d_steps[:-1])
        if len(counts) > 3:
            return shape, None
        batch, batches = _pad_steps(counts[:-1], 2), [_pad_steps(x[:-1], 2) for x in (ra, rc, rd)]
        return shape, GemmShape(
            counts[-1],
            n,
            k,
            (ra[-1], a_steps[-1]),
            b_steps[-2:],
            (rc[-1], 1),
            (rd[-1], d_steps[-1]),
            tuple(max(x, 1) for x in batch),
            batches[0],
            (0, 0),
            batches[1],
            batches[2],
        )
    counts, merged = collapse_dims(lead, a_lead, b_lead, c_steps[:-2], d_steps[:-2])
    if len(counts) > 2:
        return shape, None
    batch, batches = _pad_steps(counts, 2), [_pad_steps(x, 2) for x in merged]
    return shape, GemmShape(
        m, n, k, a_steps[-2:], b_steps[-2:], c_steps[-2:], d_steps[-2:], tuple(max(x, 1) for x in batch), *batches
    )


def _plan_matmul(device, kind: str, a, b, d, conj, then: str) -> _MatmulPlan:
    """Plan a product of new shapes and strides."""
    shape, sizes = _compute_result_and_gemm_shape(a, b, d)
    if 0 in shape:
        return _MatmulPlan(shape, None)
    if sizes is None:
        return _MatmulPlan(shape, None, "ab")
    plan = plan_gemm(device, kind, sizes, d is not None, conj, then=then)
    (*_, rows, terms), single = a[0], kind in ("f32", "f64") and len(b[0]) == 2
    return _MatmulPlan(shape, plan, few_terms=not terms or terms == 1 < rows and single)


def _broadcast_copy(x: Array, lead: tuple[int, ...]) -> Array:
    """Return a contiguous copy with the batch dimensions `lead`."""
    return clone_row_major(broadcast_view(x, (*lead, *x.shape[-2:])))


def scaled_matmul_add(
    a: Array,
    b: Array,
    d: Array | None = None,
    beta: Any = 1,
    alpha: Any = 1,
    conj: tuple[bool, bool] = _NEITHER,
    out: Array | None = None,
    turn: tuple[bool, bool] = _NEITHER,
    then: str = "",
) -> Array:
    """Return alpha * a @ b + beta * d for (..., m, k) and (..., k, n) of one dtype, d broadcast to the result.

    out: optional contiguous result. then: a fused op, without `out`. turn: operands to transpose, through their
    strides.
    """
    key = ("product", a.kind, a.shape, a.steps, b.shape, b.steps, conj, turn) + (
        () if d is None else (d.shape, d.steps)
    )
    if then:
        key = (*key, then)
    plans = a.device.plans
    how = plans.get(key)
    if how is None:
        first, second = (
            _swap_last_two(x.shape, x.steps) if across else (x.shape, x.steps)
            for x, across in zip((a, b), turn, strict=True)
        )
        how = plans[key] = _plan_matmul(
            a.device, a.kind, first, second, None if d is None else (d.shape, d.steps), conj, then
        )
    if how.copy:
        lead = how.shape[:-2]
        a, b = (
            _broadcast_copy(transpose_matrices(x) if across else x, lead)
            for x, across in zip((a, b), turn, strict=True)
        )
        return scaled_matmul_add(a, b, d, beta, alpha, conj, out, then=then)
    if how.few_terms and out is None:
        out = _multiply_few_terms(how.shape, a, b, d, beta, alpha, turn)
        return POINTWISE[then](out) if then else out
    if out is None:
        out = empty(a.device, how.shape, a.kind)
    if how.plan is not None:
        how.plan.run(a, b, out, d, alpha, beta)
    return POINTWISE[then](out) if then and getattr(how.plan, "then", "") != then else out


def _multiply_few_terms(shape, a: Array, b: Array, d: Array | None, beta: Any, alpha: Any, turn) -> Array:
    """Return alpha * a @ b + beta * d as elementwise ops, for matrices with an inner dimension of one or none."""
    a, b = (transpose_matrices(x) if across else x for x, across in zip((a, b), turn, strict=True))
    added = None if d is None else POINTWISE["mul"](broadcast_view(d, shape), beta)
    if not a.shape[-1]:
        return _new_zeros(a, shape) if added is None else added
    product = POINTWISE["mul"](a, b)
    if alpha != 1:
        product = POINTWISE["mul"](product, alpha)
    return product if added is None else POINTWISE["add"](added, product)


def _view_as_row(x: Array) -> Array:
    return make_view(x, (1, *x.shape), (0, *x.steps), x.offset)


def _view_as_column(x: Array) -> Array:
    return make_view(x, (*x.shape, 1), (*x.steps, 0), x.offset)


def _swap_last_two(*numbers: tuple[int, ...]) -> _ShapeAndSteps:
    """Return shape and strides with the last two dimensions exchanged."""
    shape, steps = ((*lead, n, m) for *lead, m, n in numbers)
    return shape, steps


def transpose_matrices(x: Array) -> Array:
    return make_view(x, *_swap_last_two(x.shape, x.steps), x.offset)


def flatten_rows(x: Array) -> Array:
    """Return (..., n) as (rows, n), a copy if that is no view."""
    return x if len(x.shape) == 2 else reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _reshape_owned(x: Array, shape: tuple[int, ...]) -> Array:
    """Return a new array in another shape of the same size that owns its memory."""
    x.shape, x.steps = shape, row_major_layout(shape)[1]
    return x


def _matmul_any_rank(
    input: Array, other: Array, d: Array | None = None, beta: Any = 1, alpha: Any = 1, conj=(False, False)
) -> Array:
    a = _view_as_row(input) if input.ndim == 1 else input
    b = _view_as_column(other) if other.ndim == 1 else other
    if not a.ndim or not b.ndim:
        raise RuntimeError("matmul of a number")
    if d is not None and d.ndim:
        d = _view_as_column(d) if other.ndim == 1 else d
    out = scaled_matmul_add(a, b, d, beta, alpha, conj)
    if a is input and b is other:
        return out
    shape = out.shape[: -1 if a is input else -2] if b is not other else (*out.shape[:-2], out.shape[-1])
    return _reshape_owned(out, shape)


def matmul(input, other):
    if input.kind != other.kind or input.kind in ("b8", "c32"):
        check_matmul_dtypes(input, other)
    if len(input.shape) > 1 and len(other.shape) > 1:
        return scaled_matmul_add(input, other)
    if _is_real_dot(input, other):
        return _dot_real_vectors(input, other)
    return _matmul_any_rank(input, other)


def mm(input, mat2):
    check_ndims(input, mat2, (2, 2))
    check_matmul_dtypes(input, mat2)
    return scaled_matmul_add(input, mat2)


def bmm(input, mat2):
    check_batched_matrices(input, mat2, "bmm")
    return scaled_matmul_add(input, mat2)


def _grouped_mm(input, mat2, offs=None, bias=None, out_dtype=None):
    if offs is None:
        return bmm(input, mat2)
    sums = input.ndim == mat2.ndim == 2  # the groups split the dimension that is summed over
    dim = 1 if input.ndim == 3 else 0  # of the result
    size = mat2.shape[1] if dim else input.shape[-1 if sums else 0]
    parts, used = [], 0
    for i, (start, length) in enumerate(split_at_ends(to_numpy(offs).tolist(), size)):
        a = select(input, 0, i) if dim else slice_view(input, 1 if sums else 0, start, length)
        b = slice_view(mat2, dim, start, length) if sums or dim else select(mat2, 0, i)
        parts.append(mm(a, b))
        used = start + length
    shape = (input.shape[-2], mat2.shape[-1])
    if sums:
        return stack(parts) if parts else _new_zeros(input, (0, *shape))
    rest = (shape[0], size - used) if dim else (size - used, shape[1])
    return cat([*parts, _new_zeros(input, rest)], dim) if size > used or not parts else cat(parts, dim)


def mv(input, vec):
    check_ndims(input, vec, (2, 1))
    check_matmul_dtypes(input, vec, "addmv_impl_cpu")
    return _matmul_any_rank(input, vec)


def _dot_vectors(name: str, a: Array, b: Array, conj: bool) -> Array:
    check_ndims(a, b, (1, 1))
    check_matmul_dtypes(a, b, name)
    if _is_real_dot(a, b):
        return _dot_real_vectors(a, b)
    return _matmul_any_rank(a, b, conj=(conj, False))


# Elements of a part of a dot product, at least, and parts, at most.
_DOT_PART, _DOT_PARTS = 1 << 14, 1 << 10


def _is_real_dot(a: Array, b: Array) -> bool:
    return len(a.shape) == 1 and a.shape == b.shape and a.size > 1 and a.kind in ("f32", "f16", "bf16")


def _dot_real_vectors(a: Array, b: Array) -> Array:
    """Return the dot product of real vectors: sums of parts, added up in double if the device has it."""
    device, kind, n = a.device, a.kind, a.size
    key = ("dot", kind, n)
    found = device.plans.get(key)
    if found is None:
        length = max(_DOT_PART, -(-n // (_DOT_PARTS * 64)) * 64)
        parts = -(-n // length)
        lanes = 1 if device.is_cpu else min(128, 1 << device.max_group.bit_length() - 1)
        width = device.width if device.is_cpu else 1
        sums = kind if parts == 1 else "f64" if device.fp64 else "f32"
        macros = {"W": str(width), "LANES": str(lanes), "COLUMNS": "0", "D": "f64" if device.fp64 else "f32"}
        widths = tuple([w for w in (2, 4, 8, 16) if w <= width])
        function = device.function(DOT, "dot_parts", "pppiiii", widths, T=kind, O=sums, **macros)
        found = device.plans[key] = function, (parts * lanes,), (lanes,), sums, (parts, n, length, 1)
    function, global_size, local_size, sums, numbers = found
    out = empty(device, (numbers[0],) if numbers[0] > 1 else (), sums)
    function(global_size, local_size, as_contiguous(a), as_contiguous(b), out, *numbers)
    return out if numbers[0] == 1 else reduce("sum", out, None, False, kind)


def dot(input, tensor):
    return _dot_vectors("dot", input, tensor, False)


def vdot(input, other):
    return _dot_vectors("vdot", input, other, True)


def _product_addend(input: Array, product_kind: str, beta: Any) -> Array | None:
    """Return the addend of a product, None if beta is 0, even for NaN."""
    if input.kind != product_kind:
        raise RuntimeError("operands of several dtypes")
    return None if beta == 0 else input


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    check_ndims(mat1, mat2, (2, 2))
    check_matmul_dtypes(mat1, mat2)
    return scaled_matmul_add(mat1, mat2, _product_addend(input, mat1.kind, beta), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    check_ndims(mat, vec, (2, 1))
    check_matmul_dtypes(mat, vec, "addmv_impl_cpu")
    if input.ndim > 1:
        raise RuntimeError("addmv adds to a vector")
    return _matmul_any_rank(mat, vec, _product_addend(input, mat.kind, beta), beta, alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    check_batched_matrices(batch1, batch2, "bmm")
    return scaled_matmul_add(batch1, batch2, _product_addend(input, batch1.kind, beta), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    check_ndims(batch1, batch2, (3, 3))
    check_matmul_dtypes(batch1, batch2, "bmm")
    (count, rows, inner), columns = batch1.shape, batch2.shape[2]
    if count != batch2.shape[0] or inner != batch2.shape[1]:
        raise RuntimeError("batches that do not fit")
    a, b = reshape(transpose(batch1, 0, 1), (rows, count * inner)), reshape(batch2, (count * inner, columns))
    return scaled_matmul_add(a, b, _product_addend(input, batch1.kind, beta), beta, alpha)


# --- linear layers --------------------------------------------------------------------------------


def linear(input, weight, bias=None):
    if input.kind != weight.kind:
        raise RuntimeError("expected m1 and m2 to have the same dtype")
    if weight.kind == "b8":
        check_matmul_dtypes(input, weight)
    if len(weight.shape) != 2 or not input.shape:
        if len(weight.shape) != 1 or not input.shape or bias is not None:
            raise RuntimeError("linear: a matrix is wanted")
        return _matmul_any_rank(input, weight)
    if bias is not None and bias.shape and bias.shape[-1] not in (1, weight.shape[0]):
        raise RuntimeError("linear: a bias for other features")
    if bias is not None and bias.kind != input.kind:
        raise RuntimeError("self and mat2 must have the same dtype")
    added = bias if bias is not None and len(bias.shape) < 2 else None
    out = (
        scaled_matmul_add(input, weight, added, turn=_SECOND)
        if len(input.shape) > 1
        else _matmul_any_rank(input, transpose_matrices(weight), added)
    )
    return out if added is bias else _add_arrays(out, bias)


def _add_arrays(x: Array, y: Array) -> Array:
    return POINTWISE["add"](x, y)


def _linear_with_epilogue(then: str, input, weight, bias=None):
    if input.ndim > 1 == (bias.ndim if bias is not None else 1) and weight.ndim == 2 and weight.kind != "b8":
        if input.kind == weight.kind and (bias is None or bias.kind == input.kind):
            return scaled_matmul_add(input, weight, bias, turn=_SECOND, then=then)
    return POINTWISE[then](linear(input, weight, bias))


def _matmul_with_epilogue(then: str, input, other):
    if input.ndim == 2 == other.ndim and input.kind == other.kind:
        return scaled_matmul_add(input, other, then=then)
    return POINTWISE[then](matmul(input, other))


def _addmm_with_epilogue(then: str, input, mat1, mat2):
    if input.kind == mat1.kind == mat2.kind:
        return scaled_matmul_add(mat1, mat2, input, then=then)
    return POINTWISE[then](addmm(input, mat1, mat2))


_FUSED: dict[str, Callable[..., Array]] = {
    "linear": _linear_with_epilogue,
    "matmul": _matmul_with_epilogue,
    "mm": _matmul_with_epilogue,
    "addmm": _addmm_with_epilogue,
}


def kernel_with_epilogue(name: str, then: str) -> Callable[..., Array] | None:
    """Return the kernel of a product with a fused elementwise op; None if they cannot be fused."""
    return functools.partial(_FUSED[name], then) if name in _FUSED and then in EPILOGUES else None


def _linear_input_grad(grad, weight):
    return (
        scaled_matmul_add(grad, weight, conj=_SECOND)
        if len(grad.shape) > 1
        else _matmul_any_rank(grad, weight, conj=_SECOND)
    )


def _linear_weight_grad(grad, input):
    return scaled_matmul_add(flatten_rows(grad), flatten_rows(input), conj=_SECOND, turn=_FIRST)
