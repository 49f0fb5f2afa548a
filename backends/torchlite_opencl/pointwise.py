"""Pointwise kernels generated from a table of C expressions, for every dtype and layout.

A rule is written once: C text over the operands `a`, `b`, `c`, … for each category of dtype (f float, i integer, b bool, c complex). `X` stands for the computed type, scalar or vector, and `S` for its scalar;
expressions must hold for vectors (comparisons give masks, `?:` chooses per element) unless the rule is marked scalar. From it come the text of a program for (dtypes, layout class) and the launch.
"""
from __future__ import annotations

import re
import struct
from typing import Any

from pyopencl._cl import enqueue_nd_range_kernel

from torchlite_kernels.preamble import KINDS

from .array import Array, empty, row_major
from .layout import broadcast_shape, broadcast_steps, collapse, dense_order

CATEGORY = {kind: "b" if kind == "b8" else "c" if kind[0] == "c" else "f" if "f" in kind else "i" for kind in KINDS}
REAL_KIND, COMPLEX_KIND = {"c64": "f32", "c128": "f64"}, {"f32": "c64", "f64": "c128"}
_LETTERS = "abcdefgh"
_GROUP = 64
# The signed integer types that OpenCL's vector comparisons give, by computed type.
_MASK = {"uchar": "char", "char": "char", "short": "short", "ushort": "short", "int": "int", "uint": "int", "long": "long", "ulong": "long", "float": "int", "double": "long"}


class Rule:
    """One pointwise op. `mask_out`: the expression is a truth value and the result is bool. `masks`: operands read as truth values. `numbers`: names of further scalar parameters of the computed type.
    `scalar`: the expression does not hold for vectors. `out`: the result's kind where it is not the operands' ("real" for a complex input's part type). `header`: C functions that the expression calls."""

    __slots__ = ("name", "by_category", "mask_out", "masks", "numbers", "scalar", "out", "header")

    def __init__(self, name: str, f: str = "", i: str = "", b: str = "", c: str = "", *, mask_out: bool = False, masks: str = "", numbers: tuple[str, ...] = (), scalar: bool = False,
                 out: str = "", header: str = ""):
        self.name, self.by_category = name, {"f": f, "i": i, "b": b, "c": c}
        self.mask_out, self.masks, self.numbers, self.scalar, self.out, self.header = mask_out, masks, numbers, scalar, out, header

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def expression(self, kind: str) -> str:
        """The expression for a kind. NotImplementedError with PyTorch's wording where the op does not take it."""
        text = self.by_category[CATEGORY[kind]]
        if not text:
            from torchlite._dtype import ALL
            raise NotImplementedError(f"\"{self.name}_opencl\" not implemented for '{ALL[KINDS[kind].numpy].scalar_name}'")
        return text


class Plan:
    """How one launch goes, but for the arrays and numbers: kernel, sizes, the layout's integers packed, the result's shape and steps."""

    __slots__ = ("kernel", "lock", "global_size", "local_size", "tail", "shape", "steps", "kind", "pack_offsets", "pack_number")

    kernel: Any
    lock: Any


def apply(rule: Rule, operands: tuple, numbers: tuple = (), out: Array | None = None, out_kind: str = "") -> Array:
    """The op of `rule` over arrays and Python numbers, broadcast; into `out` where one is given. `out_kind` overrides the result's kind."""
    first = None
    flat = True
    key: list[Any] = [rule, out_kind]
    for x in operands:
        if x.__class__ is Array:
            key.append(x.kind)
            if first is None:
                first = x
            elif x.shape != first.shape:
                flat = False
            if not x.contiguous:
                flat = False
        else:
            key.append("#")
    if out is not None:
        if first is None:
            first = out
        key.append(out.kind)
        flat = flat and out.contiguous and out.shape == first.shape
    elif first is None:
        raise TypeError(f"{rule.name}: no operand is an array")
    device = first.device
    if not flat:
        for x in operands:
            if x.__class__ is Array:
                key.append(x.shape)
                key.append(x.steps)
        if out is not None:
            key += ("out", out.shape, out.steps)
    signature = tuple(key)
    plan = device.plans.get(signature)
    if plan is None:
        plan = _make_plan(device, rule, operands, out, out_kind, flat)
        if len(device.plans) > 20000:
            device.plans.clear()
        device.plans[signature] = plan
    arrays = [x for x in operands if x.__class__ is Array]
    if out is None:
        if flat:
            out = empty(device, first.shape, plan.kind)
        else:
            out = empty(device, plan.shape, plan.kind)
            if plan.steps is not None:
                out.steps, out.contiguous = plan.steps, False
    count = first.size if flat else out.size
    if not count:
        return out
    if flat:
        per_item, local = plan.global_size, plan.local_size
        global_size = (-(-count // (per_item * _GROUP)) * _GROUP,)
        layout = plan.pack_offsets(*[x.offset for x in arrays], out.offset, count)
    else:
        global_size, local = plan.global_size, plan.local_size
        layout = plan.pack_offsets(*[x.offset for x in arrays], out.offset) + plan.tail
    kernel = plan.kernel
    with plan.lock:
        at = 0
        for x in arrays:
            kernel.set_arg(at, x.buffer)
            at += 1
        kernel.set_arg(at, out.buffer)
        kernel._set_arg_buf(at + 1, layout)
        at += 2
        if len(arrays) != len(operands) or numbers:
            for x in operands:
                if x.__class__ is not Array:
                    kernel._set_arg_buf(at, plan.pack_number(x))
                    at += 1
            for x in numbers:
                kernel._set_arg_buf(at, plan.pack_number(x))
                at += 1
        enqueue_nd_range_kernel(device.queue, kernel, global_size, local)
    return out


def main_kind(rule: Rule, operands) -> str:
    """The kind that is computed in: the first array's that is not read as a truth value; "" when there is no array."""
    for letter, x in zip(_LETTERS, operands, strict=False):
        if x.__class__ is Array and letter not in rule.masks:
            return x.kind
    return next((x.kind for x in operands if x.__class__ is Array), "")


def _result_kind(rule: Rule, kind: str) -> str:
    return "b8" if rule.mask_out else REAL_KIND.get(kind, kind) if rule.out == "real" else COMPLEX_KIND.get(kind, kind) if rule.out == "complex" else rule.out or kind


def number_packer(kind: str):
    """A function from a Python number to the bytes of a scalar argument in which `kind` is computed."""
    code = KINDS[kind].pack
    pack = struct.Struct(code).pack
    if len(code) == 2:
        return lambda z: pack(z.real, z.imag) if isinstance(z, complex) else pack(z, 0.0)
    if code in "fd":
        def floating(x):
            try:
                return pack(x)
            except OverflowError:
                return pack(float("inf") if x > 0 else float("-inf"))
        return floating
    bits = 8 * struct.calcsize(code)
    low = -(1 << bits - 1) if code.islower() else 0
    return lambda x: pack((int(x) - low) % (1 << bits) + low)


def _make_plan(device, rule: Rule, operands, out, out_kind: str, flat: bool) -> Plan:
    kind = main_kind(rule, operands) or out.kind
    plan = Plan()
    plan.kind = out.kind if out is not None else out_kind or _result_kind(rule, kind)
    plan.pack_number = number_packer(kind)
    kinds = [x.kind if x.__class__ is Array else "#" for x in operands]
    arrays = [x for x in operands if x.__class__ is Array]
    if flat:
        per_item = _build(device, plan, rule, kind, kinds, ["v" if k != "#" else "#" for k in kinds], "v", 0)
        plan.global_size, plan.local_size = per_item, (_GROUP,)
        plan.pack_offsets = struct.Struct(f"{len(arrays) + 2}i").pack
        return plan
    plan.shape = out.shape if out is not None else broadcast_shape([x.shape for x in arrays])
    if out is not None and any(broadcast_shape([x.shape, out.shape]) != out.shape for x in arrays):
        shape = broadcast_shape([out.shape, *(x.shape for x in arrays)])
        raise RuntimeError(f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}")
    walks = [broadcast_steps(x.shape, x.steps, plan.shape) for x in arrays]
    plan.steps = None if out is not None else _kept_order(plan.shape, arrays)
    target = out.steps if out is not None else plan.steps or row_major(plan.shape)[1]
    sizes, steps = collapse(plan.shape, *walks, target)
    modes = [{0: "s", 1: "v"}.get(s[-1], "g") for s in steps]
    if modes[-1] == "s" and sizes[-1] != 1:
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.")
    if sizes == [1]:
        modes[-1] = "v"
    spelled = iter(modes[:-1])
    per_item = _build(device, plan, rule, kind, kinds, [next(spelled) if k != "#" else "#" for k in kinds], modes[-1], len(sizes) - 1)
    across, down = -(-sizes[-1] // per_item), 1
    for n in sizes[:-1]:
        down *= n
    plan.local_size = (_GROUP, 1) if across >= _GROUP // 2 else (1, _GROUP)
    lx, ly = plan.local_size
    plan.global_size = (-(-across // lx) * lx, -(-down // ly) * ly)
    tail = [sizes[-1], down, *sizes[:-1]]
    for mode, s in zip(modes, steps, strict=True):
        tail += [*s[:-1], s[-1]] if mode == "g" else s[:-1]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    plan.pack_offsets = struct.Struct(f"{len(arrays) + 1}i").pack
    return plan


def _kept_order(shape, arrays) -> tuple[int, ...] | None:
    """The steps of the result when all operands of its shape lie in one and the same dense order other than row-major; None for row-major."""
    full = [x for x in arrays if x.shape == shape]
    if not full or full[0].contiguous or any(x.steps != full[0].steps for x in full) or len(full) != len([x for x in arrays if x.size != 1]):
        return None
    return full[0].steps if dense_order(shape, full[0].steps) is not None else None


# -- program text --


def _build(device, plan: Plan, rule: Rule, kind: str, kinds, modes, out_mode: str, outer: int) -> int:
    """Set the plan's kernel; returns how many elements a work-item takes."""
    wide = not rule.scalar and "g" not in modes and out_mode == "v" and not any(k[0] == "c" for k in (kind, plan.kind, *kinds))
    width = device.width if wide else 16 if device.is_cpu else 1
    flat = outer == 0 and "g" not in modes and out_mode == "v" and "s" not in modes
    source = _source(rule, kind, kinds, plan.kind, modes, out_mode, None if flat else outer, wide, width)
    typed = {f"T{i}": k for i, k in enumerate(kinds) if k != "#"}
    function = device.function(source, "run", "", (width,) if wide else (), **typed, TO=plan.kind)
    plan.kernel, plan.lock = function.kernel, function._lock
    return width


def typed_text(text: str, scalar: str, vector: str) -> str:
    """An expression with `X` and `S` replaced by C types."""
    return re.sub(r"\bS\b", scalar, re.sub(r"\bX\b", vector, text))


def _source(rule, kind, kinds, out_kind, modes, out_mode, outer, wide, width) -> str:
    """The program for one rule, its dtypes and a layout class. `outer` is the number of outer dimensions, None for one contiguous run."""
    computed, result = KINDS[kind].computed, KINDS[out_kind].computed
    mask_out = rule.mask_out
    text = rule.expression(kind)
    slots = list(zip(_LETTERS, kinds, modes, strict=False))
    parameters = [(letter, KINDS[k].computed if k != "#" else computed) for letter, k, _ in slots]
    extra = [(name, computed) for name in rule.numbers]

    def function(name: str, w: str) -> str:
        declared = [f"{_mask_type(computed, w) if letter in rule.masks else t + w} {letter}" for letter, t in parameters] + [f"{t} {n}_" for n, t in extra]
        splat = "".join(f"    {t}{w} {n} = ({t}{w})({n}_);\n" for n, t in extra)
        body = typed_text(text, computed, computed + w)
        if mask_out:
            body = f"convert_{result}{w}(-({body}))" if w else f"(({body}) != 0)"
        elif w and result != computed:
            body = f"convert_{result}{w}({body})"
        return f"{result}{w} {name}({', '.join(declared)}) {{\n{splat}    return {body};\n}}\n"

    header = typed_text(rule.header, computed, computed) if rule.header else ""
    count = sum(k != "#" for k in kinds)
    pointers = [f"GLOBAL const T{i}* {letter}_" for i, (letter, k, _) in enumerate(slots) if k != "#"] + ["GLOBAL TO* o_"]
    scalars = [f"const {computed} {letter}_" for letter, k, _ in slots if k == "#"] + [f"const {t} {n}_" for n, t in extra]
    prologue, places, length = _walk(slots, out_mode, outer, count)
    lines = [header, _complex_text(kind, kinds, out_kind), function("one", "")]
    if wide:
        lines.append(function("many", str(width)))
    lines += [f"typedef struct {{ int v[{length}]; }} Layout;", f"KERNEL void run({', '.join([*pointers, 'const Layout l', *scalars])}) {{", prologue.replace("WIDTH", str(width))]
    names = [f"{n}_" for n, _ in extra]
    if wide:
        loads = [_load(i, letter, k, mode, places.get(letter, ""), str(width), letter in rule.masks, computed) for i, (letter, k, mode) in enumerate(slots)]
        lines += [f"    if (i + {width} <= n) {{", f"        TO_ST{width}(o_, {places['o']}, many({', '.join(loads + names)}));", "        return;", "    }"]
    loads = [_load(i, letter, k, mode, places.get(letter, ""), "", letter in rule.masks, computed) for i, (letter, k, mode) in enumerate(slots)]
    lines += [f"    int end = min(i + {width}, n);", f"    for (; i < end; i++) TO_ST(o_, {places['o']}, one({', '.join(loads + names)}));", "}"]
    return "\n".join(lines)


def _mask_type(computed: str, w: str) -> str:
    return _MASK[computed] + w if w else "int"


def _load(i: int, letter: str, kind: str, mode: str, place: str, w: str, mask: bool, computed: str) -> str:
    """The C text of an operand's value: `w` elements from the place of index i on."""
    if kind == "#":
        text = f"({computed}{w})({letter}_)" if w else f"{letter}_"
        return f"({text} != 0)" if mask else text
    own = KINDS[kind].computed
    if mode == "s":
        text = f"({own}{w})(T{i}_LD({letter}_, {place}))" if w else f"T{i}_LD({letter}_, {place})"
    else:
        text = f"T{i}_LD{w}({letter}_, {place})"
    if not mask:
        return text
    return f"(convert_{_MASK[computed]}{w}({text}) != ({_MASK[computed]}{w})(0))" if w else f"({text} != 0)"


def _walk(slots, out_mode: str, outer: int | None, count: int) -> tuple[str, dict[str, str], int]:
    """The text that finds a work-item's elements, each operand's place as an expression of `i`, and the number of layout integers."""
    letters = [letter for letter, k, _ in slots if k != "#"] + ["o"]
    if outer is None:
        lines = [f"    int n = l.v[{count + 1}];", "    int i = ITEM * WIDTH;"]
        places = {letter: f"l.v[{at}] + i" for at, letter in enumerate(letters)}
        return "\n".join(lines), places, count + 2
    modes = {letter: mode for letter, k, mode in slots if k != "#"}
    modes["o"] = out_mode
    at = count + 1
    lines = [f"    int n = l.v[{at}];", "    int i = ITEM * WIDTH, rest = ITEM_Y;", f"    if (rest >= l.v[{at + 1}]) return;"]
    at += 2
    sizes = at
    at += outer
    for d in reversed(range(outer)):
        lines.append(f"    int at{d} = rest % l.v[{sizes + d}]; rest /= l.v[{sizes + d}];" if d else "    int at0 = rest;")
    places = {}
    for index, letter in enumerate(letters):
        terms = [f"l.v[{index}]", *(f"at{d} * l.v[{at + d}]" for d in range(outer))]
        at += outer
        lines.append(f"    int base_{letter} = {' + '.join(terms)};")
        places[letter] = f"base_{letter}" if modes[letter] == "s" else f"base_{letter} + i"
        if modes[letter] == "g":
            places[letter] += f" * l.v[{at}]"
            at += 1
    return "\n".join(lines), places, at


COMPLEX = r"""
C cmul(C a, C b) { return (C)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
C cconj(C a) { return (C)(a.x, -a.y); }
R cabs_(C a) { return hypot(a.x, a.y); }
C cdiv(C a, C b) {
    if (fabs(b.x) >= fabs(b.y)) {
        if (b.x == 0 && b.y == 0) return (C)(a.x / fabs(b.x), a.y / fabs(b.y));
        R r = b.y / b.x, d = b.x + b.y * r;
        return (C)((a.x + a.y * r) / d, (a.y - a.x * r) / d);
    }
    R r = b.x / b.y, d = b.x * r + b.y;
    return (C)((a.x * r + a.y) / d, (a.y * r - a.x) / d);
}
C cexp(C a) { R e = exp(a.x); return a.y == 0 ? (C)(e, a.y) : (C)(e * cos(a.y), e * sin(a.y)); }
C clog(C a) { return (C)(log(cabs_(a)), atan2(a.y, a.x)); }
"""


def _complex_text(*kinds) -> str:
    """The complex functions for the complex kind among those of a kernel."""
    found = [k for k in _flat(kinds) if k in REAL_KIND]
    if not found:
        return ""
    return typed_complex(found[0])


def typed_complex(kind: str) -> str:
    """The complex functions, with C and R as the kind's types."""
    return f"typedef {KINDS[kind].computed} C;\ntypedef {KINDS[REAL_KIND[kind]].computed} R;\n{COMPLEX}"


def _flat(kinds):
    for k in kinds:
        if isinstance(k, str):
            yield k
        else:
            yield from k


# -- the table --

RULES = {rule.name: rule for rule in (
    Rule("add", f="a + b", i="a + b", b="a | b", c="a + b"),
    Rule("sub", f="a - b", i="a - b", c="a - b"),
    Rule("mul", f="a * b", i="a * b", b="a & b", c="cmul(a, b)"),
    Rule("div", f="a / b", c="cdiv(a, b)"),
    Rule("maximum", f="(a > b) | (a != a) ? a : b", i="a > b ? a : b", b="a | b"),
    Rule("minimum", f="(a < b) | (a != a) ? a : b", i="a < b ? a : b", b="a & b"),
    Rule("eq", f="a == b", i="a == b", b="a == b", c="(a.x == b.x) & (a.y == b.y)", mask_out=True),
    Rule("ne", f="a != b", i="a != b", b="a != b", c="(a.x != b.x) | (a.y != b.y)", mask_out=True),
    Rule("lt", f="a < b", i="a < b", b="a < b", mask_out=True),
    Rule("le", f="a <= b", i="a <= b", b="a <= b", mask_out=True),
    Rule("gt", f="a > b", i="a > b", b="a > b", mask_out=True),
    Rule("ge", f="a >= b", i="a >= b", b="a >= b", mask_out=True),
    Rule("logical_and", f="(a != 0) & (b != 0)", i="(a != 0) & (b != 0)", b="(a != 0) & (b != 0)", c="((a.x != 0) | (a.y != 0)) & ((b.x != 0) | (b.y != 0))", mask_out=True),
    Rule("logical_or", f="(a != 0) | (b != 0)", i="(a != 0) | (b != 0)", b="(a != 0) | (b != 0)", c="(a.x != 0) | (a.y != 0) | (b.x != 0) | (b.y != 0)", mask_out=True),
    Rule("logical_xor", f="(a != 0) ^ (b != 0)", i="(a != 0) ^ (b != 0)", b="(a != 0) ^ (b != 0)", c="((a.x != 0) | (a.y != 0)) ^ ((b.x != 0) | (b.y != 0))", mask_out=True),
    Rule("bitwise_and", i="a & b", b="a & b"),
    Rule("bitwise_or", i="a | b", b="a | b"),
    Rule("bitwise_xor", i="a ^ b", b="a ^ b"),
    Rule("logical_not", f="a == 0", i="a == 0", b="a == 0", c="(a.x == 0) & (a.y == 0)", mask_out=True),
    Rule("bitwise_not", i="~a", b="a ^ (X)(1)"),
    Rule("isnan", f="isnan(a)", i="a != a", b="a != a", c="isnan(a.x) | isnan(a.y)", mask_out=True),
    Rule("isinf", f="isinf(a)", i="a != a", b="a != a", c="isinf(a.x) | isinf(a.y)", mask_out=True),
    Rule("isfinite", f="isfinite(a)", i="a == a", b="a == a", c="isfinite(a.x) & isfinite(a.y)", mask_out=True),
    Rule("neg", f="-a", i="-a", c="-a"),
    Rule("abs", f="fabs(a)", i="a < (X)(0) ? -a : a", c="cabs_(a)", out="real"),
    Rule("exp", f="exp(a)", c="cexp(a)"),
    Rule("log", f="log(a)", c="clog(a)"),
    Rule("log1p", f="log1p(a)"), Rule("expm1", f="expm1(a)"), Rule("exp2", f="exp2(a)"), Rule("log2", f="log2(a)"), Rule("log10", f="log10(a)"),
    Rule("sin", f="sin(a)"), Rule("cos", f="cos(a)"), Rule("tanh", f="tanh(a)"), Rule("erf", f="erf(a)"),
    Rule("sqrt", f="sqrt(a)"),
    Rule("rsqrt", f="1 / sqrt(a)", c="cdiv((C)(1, 0), cexp((C)(0.5, 0) * clog(a).xx))"),
    Rule("reciprocal", f="1 / a", c="cdiv((C)(1, 0), a)"),
    Rule("square", f="a * a", i="a * a", b="a", c="cmul(a, a)"),
    Rule("sigmoid", f="1 / (1 + exp(-a))", c="cdiv((C)(1, 0), (C)(1, 0) + cexp(-a))"),
    Rule("floor", f="floor(a)", i="a"), Rule("ceil", f="ceil(a)", i="a"), Rule("trunc", f="trunc(a)", i="a"),
    Rule("sign", f="a > 0 ? (X)(1) : (a < 0 ? (X)(-1) : (X)(0))", i="a > (X)(0) ? (X)(1) : (a < (X)(0) ? (X)(-1) : (X)(0))", b="a"),
    Rule("conj_physical", f="a", i="a", b="a", c="cconj(a)"),
)}
_COPY = Rule("copy", f="a", i="a", b="a", c="a")
_TO_BOOL = Rule("to_bool", f="a != 0", i="a != 0", b="a != 0", c="(a.x != 0) | (a.y != 0)", mask_out=True)
_REAL_PART = Rule("real_part", c="a.x", out="real")
_CHOOSE = Rule("where", f="c ? a : b", i="c ? a : b", b="c ? a : b", c="c ? a : b", masks="c")


def unary_kernel(rule: Rule):
    """The kernel of an op of one operand."""
    def kernel(input):
        return apply(rule, (input,))
    return kernel


def binary_kernel(rule: Rule):
    """The kernel of an op of two operands, of which one may be a Python number."""
    def kernel(input, other):
        return apply(rule, (input, other))
    return kernel


def in_place(rule: Rule, arity: int):
    """The kernel of an op's in-place form: writes into its first operand."""
    if arity == 1:
        def kernel(input):
            apply(rule, (input,), (), input)
    else:
        def kernel(input, other):
            apply(rule, (input, other), (), input)
    return kernel


def _arity(rule: Rule) -> int:
    return 2 if any(re.search(r"\bb\b", text) for text in rule.by_category.values()) else 1


KERNELS: dict[str, Any] = {}
for _rule in RULES.values():
    KERNELS[_rule.name] = (unary_kernel if _arity(_rule) == 1 else binary_kernel)(_rule)
    if not _rule.mask_out and not _rule.out:
        KERNELS[_rule.name + "_"] = in_place(_rule, _arity(_rule))


def cast(x: Array, kind: str, out: Array | None = None) -> Array:
    """`x` converted to another kind, also into `out`; a complex number loses its imaginary part on the way to a real one."""
    if kind == x.kind:
        return apply(_COPY, (x,), (), out)
    if kind == "b8":
        return apply(_TO_BOOL, (x,), (), out)
    if kind in REAL_KIND:
        return apply(_widen(x.kind, kind), (x,), (), out, kind)
    if x.kind in REAL_KIND:
        return apply(_REAL_PART, (x,), (), out, kind)
    return apply(_COPY, (x,), (), out, kind)


_WIDENING: dict[tuple[str, str], Rule] = {}


def _widen(source: str, kind: str) -> Rule:
    rule = _WIDENING.get((source, kind))
    if rule is None:
        wide = KINDS[kind].computed
        text = f"convert_{wide}(a)" if source in REAL_KIND else f"({wide})(a, 0)"
        rule = _WIDENING[source, kind] = Rule("to_complex", f=text, i=text, b=text, c=text, scalar=True)
    return rule


def choose(condition: Array, input, other) -> Array:
    """`input` where the condition holds, else `other`; either may be a Python number."""
    return apply(_CHOOSE, (input, other, condition))


def _choose(input, other, condition):
    return choose(condition, input, other)


def _where(condition, input, other):
    return choose(condition, input, other)


def where(condition, input=None, other=None):
    return choose(condition, input, other)


def to(input, dtype):
    from .array import kind_of
    kind = kind_of(dtype.np)
    return input if kind == input.kind else cast(input, kind)


def conj(input):
    return KERNELS["conj_physical"](input) if input.kind in REAL_KIND else input


def pow(input, exponent):
    return apply(_POW, (input, exponent))


_POW = Rule("pow", f="pow(a, b)")


def fill_number(target: Array, value) -> None:
    """Set all elements of an array to a Python number."""
    if target.kind == "b8":
        value = bool(value)
    apply(_COPY, (value,), (), target)
