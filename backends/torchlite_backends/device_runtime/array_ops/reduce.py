"""Reductions over any dimensions, in one launch, or for few large outputs in partial results that are combined."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

from torchlite._dispatch.shape_and_value_checks import mean_dtype_error
from torchlite._dispatch.shapes import wrap_dim, wrap_dims
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.reduce import (
    COMPUTED_IN_DOUBLE,
    OPS,
    REAL_OF,
    SECOND_OUTPUTS,
    WIDE_OPS,
    accumulator_kind_of,
    compute_kind,
    intermediate_kind_of,
    reduction_source,
)

from ..core.array import Array, empty, kind_of, make_view
from ..core.broadcasting import collapse_dims
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import Device, Function, round_up_to_groups
from ..core.pointwise_dispatch import cast
from .prologue_fusion import WIDTH, fuse_reduction_launch

_SIMPLE_LOOP_MAX = 4096  # elements up to which the simplest loops suffice
_pack = struct.Struct("16if").pack
INTEGRAL_KINDS = {"b8", "u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64"}
_EMPTY = {
    "prod": 1,
    "all": 1,
    "mean": math.nan,
    "var": math.nan,
    "std": math.nan,
    "logsumexp": -math.inf,
}  # identity of the reduction, else 0


def normalize_axes(x: Array, dim) -> tuple[int, ...]:
    """Return a dimension argument as a tuple counted from the front; None, () and [] mean all."""
    if dim.__class__ is int and -len(x.shape) <= dim < len(x.shape):
        return (dim % len(x.shape),)
    if dim is None:
        return tuple(range(len(x.shape)))
    dims = wrap_dims(dim, len(x.shape))
    return dims if x.shape else ()


def compute_reduced_shape(shape, axes, keepdim: bool) -> tuple[int, ...]:
    """Return the result's shape."""
    if keepdim:
        return tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in axes])


class ReductionLayout:
    """Layout of the outputs' first elements and of the elements of each: up to three dimensions of both (outermost
    first).
    """

    __slots__ = ("kept", "sizes", "bases", "lengths", "steps", "count")

    def __init__(self, sizes, bases, lengths, steps):
        lead, head = 3 - len(sizes), 3 - len(lengths)
        self.sizes, self.bases = [1] * lead + sizes, [0] * lead + bases
        self.lengths, self.steps = [1] * head + lengths, [0] * head + steps
        self.kept, self.count = math.prod(sizes), math.prod(lengths)

    def pack(self, axis: int, chunk: int, parts: int, correction: float) -> bytes:
        """Return the kernels' struct."""
        return _pack(
            self.kept,
            *self.sizes[1:],
            *self.bases,
            *self.lengths,
            *self.steps,
            axis,
            chunk,
            parts,
            self.count,
            correction,
        )

    def layout(self, device: Device, real: bool) -> str:
        """Return the loop variant for this memory layout.

        CPUs read rows and columns as vectors. Elsewhere a work-group shares an output unless there are enough outputs.
        """
        if not device.is_cpu:
            side_by_side = self.bases[2] == 1 and self.sizes[2] >= 32
            return "any" if self.count < 64 or (side_by_side and self.kept >= 1024) else "group"
        if not real or self.kept * self.count <= _SIMPLE_LOOP_MAX:
            return "any"
        if self.steps[2] == 1 and self.lengths[2] >= 16:
            return "row"
        return "column" if self.bases[2] == 1 and self.sizes[2] >= 16 else "any"

    def split(self, device: Device, items: int) -> tuple[int, int, int]:
        """Return the dimension to split to use the full device, the length and the number of parts."""
        axis = max(range(3), key=lambda d: (self.lengths[d], d))
        wanted, least = (4 * device.units, 16384) if device.is_cpu else (8 * device.units, 4096)
        parts = min(-(-wanted // items), self.kept * self.count // (least * items), self.lengths[axis])
        chunk = -(-self.lengths[axis] // max(parts, 1))
        if axis == 2 and self.steps[2] == 1 and parts > 1:
            chunk = -(-chunk // 16) * 16
        return axis, chunk, max(-(-self.lengths[axis] // max(chunk, 1)), 1)


def plan_reduction_layout(x: Array, axes: tuple[int, ...], ordered: bool) -> tuple[ReductionLayout, bool]:
    """Return the layout of each output's elements, and whether x must be copied into rows first.

    `ordered` keeps the reduced dimensions in row-major order.
    """
    chosen = sorted(axes) if ordered else sorted(axes, key=lambda d: -x.steps[d])
    kept = [d for d in range(x.ndim) if d not in axes]
    sizes, (bases,) = collapse_dims([x.shape[d] for d in kept], [x.steps[d] for d in kept])
    lengths, (steps,) = collapse_dims([x.shape[d] for d in chosen], [x.steps[d] for d in chosen])
    if len(sizes) > 3 or len(lengths) > 3:
        count = math.prod(lengths)
        return ReductionLayout([math.prod(sizes)], [count], [count], [1]), True
    return ReductionLayout(sizes, bases, lengths, steps), False


def copy_with_reduced_dims_last(x: Array, axes: tuple[int, ...]) -> Array:
    """Copy with the reduced dimensions innermost in memory."""
    order = [d for d in range(x.ndim) if d not in axes] + sorted(axes)
    return as_contiguous(make_view(x, tuple([x.shape[d] for d in order]), tuple([x.steps[d] for d in order]), x.offset))


class _Launch:
    """Kernel with its sizes and packed layout."""

    __slots__ = ("function", "items", "group", "geometry", "rows")

    def __init__(self, function: Function, items: int, group: int, geometry: bytes, rows: tuple = ()):
        self.function, self.items, self.group, self.geometry = (
            function,
            round_up_to_groups(items, group),
            (group,),
            geometry,
        )
        self.rows = rows  # arguments of `fuse_reduction_launch` if fusion with the producer is possible

    def __call__(self, x: Array, *arrays: Array) -> None:
        function: Any = None
        if self.rows and x.device.waiting.takes_rows:
            text, reduced, kinds = self.rows
            function = fuse_reduction_launch(text, self.function.name, "pppx", x, reduced, **kinds)
        if function is None:
            self.function(self.items, self.group, x, *arrays, self.geometry)
        else:
            function(self.items, self.group, *arrays, self.geometry)


class _ReductionPlan:
    """Reduction plan for given shapes: the output's shape and kinds, and the launches."""

    __slots__ = ("shape", "kind", "more", "axes", "copied", "whole", "stages", "kept")

    def __init__(
        self, op: str, x: Array, axes: tuple[int, ...], shape: tuple[int, ...], kind: str, work: str, correction: float
    ):
        self.shape, self.kind, self.axes = shape, kind, axes
        self.more, more = (x.kind, x.kind) if op in SECOND_OUTPUTS else ("", kind)
        form, self.copied = plan_reduction_layout(x, axes, op in SECOND_OUTPUTS)
        self.kept, self.whole, self.stages = form.kept, None, []
        device, layout = x.device, form.layout(x.device, work[0] != "c")
        wide, group, items = 1, 1, form.kept
        if layout == "column":
            most = 8 if work == "f64" else 16  # as many registers
            wide = most if form.sizes[2] >= 256 else 4 if form.sizes[2] >= 64 else 1
            items = form.kept // form.sizes[2] * -(-form.sizes[2] // (16 * wide))
        elif layout == "group":
            group = min(128, device.group)
        axis, chunk, parts = form.split(device, items)
        packed = form.pack(axis, chunk, parts, correction)
        local = (
            group
            if group > 1
            else min(16, items)
            if device.is_cpu and form.kept * form.count <= _SIMPLE_LOOP_MAX
            else _choose_group_size(device, items * parts)
        )
        widths = (16,) if layout in ("row", "column") else ()
        # Rows read once and only as vectors, like elementwise ops.
        same = work == x.kind or x.kind == "f32" and work == "f64"
        chains = layout == "row" and len(OPS[op]) == 1 and same and x.contiguous and not form.count % WIDTH
        reduced = len(axes) if chains and tuple(sorted(axes)) == tuple(range(x.ndim))[x.ndim - len(axes) :] else 0
        if parts == 1:
            text = reduction_source(op, work, "whole", layout, wide=wide, group=group)
            kinds = {"O": kind, "M": more}
            function = device.function(text, "whole", "pppx", widths, T=x.kind, **kinds)
            self.whole = _Launch(function, items * group, local, packed, (text, reduced, kinds) if reduced else ())
            return
        between = intermediate_kind_of(op, work)
        for number, how in enumerate(OPS[op], 1):
            last, kept_in = number == len(OPS[op]), accumulator_kind_of(how, work)
            text, kinds = reduction_source(op, work, "part", layout, number, wide, group), {"B": between, "P": kept_in}
            part = device.function(text, "part", "pppx", widths, T=x.kind, **kinds)
            join = device.function(
                reduction_source(op, work, "join", layout, number),
                "join",
                "ppppx",
                B=between,
                P=kept_in,
                O=kind if last else between,
                M=more if last else between,
            )
            self.stages.append(
                (
                    _Launch(part, items * parts * group, local, packed, (text, reduced, kinds) if reduced else ()),
                    kept_in,
                    parts * form.kept,
                    _Launch(join, form.kept, _choose_group_size(device, form.kept), packed),
                    between,
                )
            )

    def run(self, x: Array) -> tuple[Array, Array]:
        """Return the result and, for ops that have one, the second result."""
        device = x.device
        if self.copied:
            x = copy_with_reduced_dims_last(x, self.axes)
        out = empty(device, self.shape, self.kind)
        more = empty(device, self.shape, self.more) if self.more else out
        if self.whole is not None:
            self.whole(x, out, more)
            return out, more
        before = out
        for number, (part, kept_in, size, join, between) in enumerate(self.stages, 1):
            parts = empty(device, (size,), kept_in)
            part(x, before, parts)
            if number == len(self.stages):
                join(parts, before, out, more)
            else:
                found = empty(device, (self.kept,), between)
                join(parts, before, found, found)
                before = found
        return out, more


def _choose_group_size(device: Device, items: int) -> int:
    """Return the work-group size for items with separate loops."""
    if not device.is_cpu:
        return min(64, device.group)
    return 16 if items >= 64 * device.units else 1


def reduce(op: str, x: Array, dim, keepdim: bool, kind: str, work: str = "", correction: float = 0.0) -> Any:
    """Reduce by a name of `torchlite_backends.kernel_sources.reduce.OPS` into elements of `kind`.

    Return a pair for ops with a second output. `work` is the kind to compute in.
    """
    if dim.__class__ is list:
        dim = tuple(dim)
    key = ("reduction", op, x.kind, x.shape, x.steps, dim, keepdim, kind, correction)
    plans = x.device.plans
    plan = plans.get(key)
    if plan is None:
        axes = normalize_axes(x, dim)
        shape = compute_reduced_shape(x.shape, axes, keepdim)
        if not x.size or 0 in shape:
            out = empty(x.device, shape, kind)
            value = complex(math.nan, math.nan) if op == "mean" and kind[0] == "c" else _EMPTY.get(op, 0)
            return fill_with(out, value) if out.size else out
        work = work or compute_kind(x.kind)
        if work == "f32" and x.device.fp64:
            if op in COMPUTED_IN_DOUBLE:
                work = "f64"
            op = WIDE_OPS.get(op, op)
        plan = plans[key] = _ReductionPlan(op, x, axes, shape, kind, work, correction)
    out, more = plan.run(x)
    return (out, more) if plan.more else out


def _scalar_type_name(x: Array) -> str:
    return from_np(x.dtype).scalar_name


def resolve_dtype(input: Array, dtype) -> tuple[Array, str]:
    """Return the input and the kind to reduce it into: integers as int64 unless `dtype` is given."""
    if dtype is None:
        return input, "i64" if input.kind in INTEGRAL_KINDS else input.kind
    kind = kind_of(dtype.np)
    if kind == "b8" or kind != input.kind and "c" in (kind[0], input.kind[0]):
        input = cast(input, kind)
    return input, kind


@functools.cache
def accumulation_kind_of(kind: str) -> str:
    """Return the kind in which sums and products into `kind` are accumulated."""
    return "i64" if kind in INTEGRAL_KINDS and kind != "u64" else compute_kind(kind)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    input, kind = resolve_dtype(input, dtype)
    if kind == "b8":
        return any(input, dim, keepdim)
    return reduce("sum", input, dim, keepdim, kind, accumulation_kind_of(kind))


def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is not None:
        input, kind = resolve_dtype(input, dtype)
    else:
        kind = input.kind
    if kind in INTEGRAL_KINDS:
        raise mean_dtype_error(from_np(input.dtype), dtype)
    return reduce("mean", input, dim, keepdim, kind, compute_kind(kind))


def prod(input, dim=None, keepdim=False, *, dtype=None):
    input, kind = resolve_dtype(input, dtype)
    if kind == "b8":
        return all(input, dim, keepdim)
    return reduce("prod", input, dim, keepdim, kind, accumulation_kind_of(kind))


def _reduce_extreme(op: str, kernel: str, input: Array, dim, keepdim: bool) -> Array:
    if input.kind[0] == "c":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{_scalar_type_name(input)}'")
    if not input.size:
        if dim is None or dim.__class__ is not int and not dim:
            raise RuntimeError(
                f"{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        for d in normalize_axes(input, dim):
            check_not_empty(op, input, d)
    return reduce(op, input, dim, keepdim, input.kind)


def amax(input, dim=(), keepdim=False):
    return _reduce_extreme("amax", "max_values_cpu", input, dim, keepdim)


def amin(input, dim=(), keepdim=False):
    return _reduce_extreme("amin", "min_values_cpu", input, dim, keepdim)


def _test_each(input):
    return cast(cast(input, "b8"), "u8") if input.kind == "u8" else cast(input, "b8")


def any(input, dim=None, keepdim=False):
    if dim == ():
        return _test_each(input)
    return reduce("any", input, dim, keepdim, "u8" if input.kind == "u8" else "b8")


def all(input, dim=None, keepdim=False):
    if dim == ():
        return _test_each(input)
    return reduce("all", input, dim, keepdim, "u8" if input.kind == "u8" else "b8")


def count_nonzero(input, dim=None):
    return reduce("count_nonzero", input, dim, False, "i64")


# One element along a dimension


def check_not_empty(name: str, x: Array, dim: int) -> None:
    """Raise IndexError for a reduction without an identity along an empty `dim`."""
    if x.shape and x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _reduce_argextreme(op: str, name: str, input: Array, dim, keepdim: bool) -> tuple[Array, Array]:
    """Return the first index of the greatest or least element, and that element."""
    if input.kind[0] == "c":
        raise NotImplementedError(f"\"{name}\" not implemented for '{_scalar_type_name(input)}'")
    if not input.size:
        if dim is None:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        check_not_empty(name, input, wrap_dim(dim, input.ndim))
        shape = compute_reduced_shape(input.shape, normalize_axes(input, dim), keepdim)
        return empty(input.device, shape, "i64"), empty(input.device, shape, input.kind)
    return reduce(op, input, dim, keepdim, "i64")


def argmax(input, dim=None, keepdim=False):
    return _reduce_argextreme("max_dim", "argmax", input, dim, keepdim)[0]


def argmin(input, dim=None, keepdim=False):
    return _reduce_argextreme("min_dim", "argmin", input, dim, keepdim)[0]


def _max_dim(input, dim, keepdim=False):
    place, value = _reduce_argextreme("max_dim", "max", input, wrap_dim(dim, input.ndim), keepdim)
    return value, place


def _min_dim(input, dim, keepdim=False):
    place, value = _reduce_argextreme("min_dim", "min", input, wrap_dim(dim, input.ndim), keepdim)
    return value, place


# Statistics


def _reduce_var_or_std(op: str, input: Array, dim, correction: float, keepdim: bool) -> Array:
    if input.kind in INTEGRAL_KINDS:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    return reduce(op, input, dim, keepdim, REAL_OF.get(input.kind, input.kind), correction=float(correction))


def _var_correction(input, dim=None, correction=1, keepdim=False):
    return _reduce_var_or_std("var", input, dim, correction, keepdim)


def _std_correction(input, dim=None, correction=1, keepdim=False):
    return _reduce_var_or_std("std", input, dim, correction, keepdim)


def logsumexp(input, dim=None, keepdim=False):
    return reduce("logsumexp", input, dim, keepdim, input.kind)
