"""Reductions over any dimensions: one work-item a result, generated for the numbers of kept and reduced dimensions."""
from __future__ import annotations

import struct

from .array import Array, empty
from .layout import collapse
from .pointwise import CATEGORY, apply, Rule, cast, typed_complex
from .runtime import grid

# Start, step and end of each reduction by category: `r` the running value, `a` the next element, A the accumulator's type.
_STEPS = {
    "sum": ("0", "r + a"), "prod": ("1", "MULTIPLY(r, a)"), "amax": ("FIRST", "(a > r || a != a) ? a : r"), "amin": ("FIRST", "(a < r || a != a) ? a : r"),
    "any": ("0", "r | (a != 0)"), "all": ("1", "r & (a != 0)"),
}
_ACCUMULATOR = {"f16": "float", "bf16": "float", "f32": "float", "f64": "double", "c64": "float2", "c128": "double2"}


def axes_of(x: Array, dim) -> tuple[int, ...]:
    """A dimension argument as a sorted tuple; None, () and [] mean all."""
    if not x.shape:
        return ()
    if dim is None or dim.__class__ is not int and not dim:
        return tuple(range(x.ndim))
    dims = (dim,) if dim.__class__ is int else dim
    return tuple(sorted(d % x.ndim for d in dims))


def reduced_shape(shape, axes, keepdim: bool) -> tuple[int, ...]:
    """The result's shape."""
    if keepdim:
        return tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in axes])


def _source(step: str, start: str, accumulator: str, kept: int, reduced: int, complex_text: str) -> str:
    at = 2
    lines = ["    int out_at = ITEM, rest = ITEM, base = 0;", "    if (out_at >= l.v[0]) return;"]
    for d in reversed(range(kept)):
        lines.append(f"    base += (rest % l.v[{at + d}]) * l.v[{at + kept + d}]; rest /= l.v[{at + d}];")
    at += 2 * kept
    outer = reduced - 1
    body = ["        int place = base, left = k;"]
    for d in reversed(range(outer)):
        body.append(f"        place += (left % l.v[{at + d}]) * l.v[{at + reduced + d}]; left /= l.v[{at + d}];")
    inner, inner_step = f"l.v[{at + outer}]", f"l.v[{at + reduced + outer}]"
    first = "T_LD(AT(x), base)" if start == "FIRST" else f"(A)({start})" if start == "0" or accumulator[-1] != "2" else "(A)(1, 0)"
    return "\n".join([
        complex_text, f"typedef {accumulator} A;", f"typedef struct {{ int v[{at + 2 * reduced}]; }} Layout;",
        "KERNEL void run(IN(T, x), OUT(TO, out), const Layout l) {", *lines, f"    A r = {first};", "    for (int k = 0; k < l.v[1]; k++) {", *body,
        f"        for (int i = 0; i < {inner}; i++) {{ A a = (A)(T_LD(AT(x), place + i * {inner_step})); r = {step}; }}", "    }", "    TO_ST(AT(out), out_at, r);", "}"])


def reduce(name: str, x: Array, dim, keepdim: bool, out_kind: str) -> Array:
    """One of the reductions of the table above."""
    axes = axes_of(x, dim)
    shape = reduced_shape(x.shape, axes, keepdim)
    key = ("reduce", name, x.kind, out_kind, x.shape, x.steps, axes)
    plan = x.device.plans.get(key)
    out = empty(x.device, shape, out_kind)
    if not out.size:
        return out
    if plan is None:
        plan = x.device.plans[key] = _plan(name, x, axes, out_kind, out.size)
    function, layout, size = plan
    function(size, (64,), x, out, layout)
    return out


def _plan(name, x, axes, out_kind, count):
    kept_dims = [d for d in range(x.ndim) if d not in axes]
    kept, kept_steps = collapse([x.shape[d] for d in kept_dims], [x.steps[d] for d in kept_dims])
    reduced, reduced_steps = collapse([x.shape[d] for d in axes], [x.steps[d] for d in axes])
    accumulator = _ACCUMULATOR.get(x.kind, "int" if name in ("any", "all") else "ulong" if x.kind == "u64" else "long")
    start, step = _STEPS[name]
    if start == "FIRST" and 0 in reduced:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    source = _source(step.replace("MULTIPLY(r, a)", "cmul(r, a)" if x.kind[0] == "c" else "r * a"), start, accumulator, len(kept), len(reduced), typed_complex(x.kind) if x.kind[0] == "c" else "")
    function = x.device.function(source, "run", "ppx", T=x.kind, TO=out_kind)
    outer = 1
    for n in reduced[:-1]:
        outer *= n
    numbers = [count, outer, *kept, *kept_steps[0], *reduced, *reduced_steps[0]]
    return function, struct.pack(f"{len(numbers)}i", *numbers), grid(count, 64)


def sum(input, dim=None, keepdim=False, *, dtype=None):
    from .array import kind_of
    if dtype is not None:
        kind = kind_of(dtype.np)
        if kind != input.kind:
            input = cast(input, kind)
    return reduce("sum", input, dim, keepdim, "i64" if CATEGORY[input.kind] in "ib" else input.kind)


_DIVIDE = Rule("mean", f="a / b", c="a / b.x")


def mean(input, dim=None, keepdim=False, *, dtype=None):
    total = sum(input, dim, keepdim, dtype=dtype)
    if CATEGORY[total.kind] in "ib":
        from torchlite._dtype import from_np
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {from_np(input.dtype).scalar_name}")
    count = 1
    for d in axes_of(input, dim):
        count *= input.shape[d]
    return apply(_DIVIDE, (total, float(count) if count else float("nan")), (), total)


def amax(input, dim=(), keepdim=False):
    return reduce("amax", input, dim, keepdim, input.kind)


def amin(input, dim=(), keepdim=False):
    return reduce("amin", input, dim, keepdim, input.kind)


def any(input, dim=None, keepdim=False):
    return reduce("any", input, dim, keepdim, "u8" if input.kind == "u8" else "b8")


def all(input, dim=None, keepdim=False):
    return reduce("all", input, dim, keepdim, "u8" if input.kind == "u8" else "b8")
