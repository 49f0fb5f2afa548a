"""Pointwise kernels generated from a table of C expressions, for every dtype and layout.

A rule says an op once: C text over the operands `a`, `b`, `c`, … for each category of dtype. From it come the program for (dtypes, layout class) and the launch. There are three layout classes: one contiguous run
in vectors; rows of any outer dimensions, in vectors along the innermost; and one program for everything small, which walks up to five dimensions told at run time.
"""
from __future__ import annotations

import builtins
import functools
import re
import struct
from typing import Any

from pyopencl._cl import enqueue_nd_range_kernel

from torchlite._dtype import ALL, promote_types
from torchlite_kernels import complex as complex_functions
from torchlite_kernels import special
from torchlite_kernels.preamble import KINDS

from .array import Array, dtype_of_kind, empty, kind_of, row_major
from .layout import broadcast_shape, broadcast_steps, collapse, dense_order

CATEGORY = {kind: "b" if kind == "b8" else "c" if kind[0] == "c" else "f" if "f" in kind else "i" for kind in KINDS}
REAL_KIND, COMPLEX_KIND = {"c64": "f32", "c128": "f64"}, {"f32": "c64", "f64": "c128", "f16": "c64", "bf16": "c64"}
_LETTERS = "abcdefgh"
_GROUP = 64
# Below these sizes a launch costs more than the work, and the one program for all layouts serves.
_SMALL_FLAT, _SMALL = 256, 4096
_RANK, _MOST = 5, 32
# The signed integer types that OpenCL's vector comparisons give, by computed type.
_MASK = {"uchar": "char", "char": "char", "short": "short", "ushort": "short", "int": "int", "uint": "int", "long": "long", "ulong": "long", "float": "int", "double": "long"}
_SIZE = {"char": 1, "short": 2, "int": 4, "long": 8}


class Rule:
    """One pointwise op: C text for floating (f; d for double where it differs), integer (i), bool (b) and complex (c) operands.

    The text is an expression or, with `return`, statements. `X` stands for the computed type, a scalar or a vector of it, `S` for its scalar, `N(1.5)` for a number of it. `scalar` names the categories whose text does
    not hold for vectors (complex texts never do). `test`: the text is a truth value. `masks`: operands read as truth values. `numbers`: further scalar parameters. `wide` names the categories that are computed in double,
    one by one, where the device has it. The text may call the functions of `torchlite_kernels.special` and `.complex`. `out`: the result's kind where it is not the operands' ("real" or "complex": that belonging to it).
    `by_kind`: text for a single kind. `kernel`: the name in the message for a dtype that the op does not take; `refuses`: category -> another exception.
    """

    __slots__ = ("name", "texts", "scalar", "test", "masks", "numbers", "wide", "out", "kernel", "refuses")

    def __init__(self, name: str, f: str = "", i: str = "", b: str = "", c: str = "", d: str = "", *, scalar: str = "", test: bool = False, masks: str = "", numbers: tuple[str, ...] = (),
                 wide: str = "", out: str = "", by_kind: dict[str, str] | None = None, kernel: str = "", refuses: dict[str, Exception] | None = None):
        self.name, self.texts = name, {"f": f, "f64": d or f, "i": i, "b": b, "c": c, **(by_kind or {})}
        self.scalar = scalar + wide + ("dc" if "f" in wide else "c")
        self.test, self.masks, self.numbers, self.wide, self.out = test, masks, numbers, wide, out
        self.kernel, self.refuses = kernel or f"{name}_cpu", refuses or {}

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def text(self, kind: str) -> str:
        """The C text for a kind. The error of PyTorch where the op does not take it."""
        category = CATEGORY[kind]
        text = self.texts.get(kind) or self.texts[category]
        if not text:
            if category in self.refuses:
                raise self.refuses[category].__class__(*self.refuses[category].args)
            raise NotImplementedError(f"\"{self.kernel}\" not implemented for '{ALL[KINDS[kind].numpy].scalar_name}'")
        return text


class Plan:
    """How one launch goes, but for the arrays and numbers: kernel, sizes, the layout's integers packed, the result's shape, steps and kind."""

    __slots__ = ("kernel", "lock", "per_item", "global_size", "local_size", "tail", "pack", "shape", "steps", "size", "kind", "dtype", "numbers", "count")

    kernel: Any
    lock: Any
    per_item: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    tail: Any
    pack: Any
    shape: tuple[int, ...]
    steps: Any
    size: int
    kind: str
    dtype: Any
    numbers: Any
    count: int


# -- launching --


def apply(rule: Rule, operands: tuple, numbers: tuple = (), out: Array | None = None, out_kind: str = "") -> Array:
    """The op of `rule` over arrays and Python numbers, broadcast; into `out` where one is given. `out_kind` overrides the result's kind."""
    arrays = [x for x in operands if x.__class__ is Array]
    if arrays:
        first = arrays[0]
    elif out is not None:
        first = out
    else:
        raise TypeError(f"{rule.name}: no operand is an array")
    shape, flat, key = first.shape, first.contiguous, [rule, out_kind]
    for x in operands:
        if x.__class__ is Array:
            key.append(x.kind)
            if not x.contiguous or x.shape != shape:
                flat = False
        else:
            key.append(x.__class__)
    if out is not None:
        key.append(out.kind)
        flat = flat and out.contiguous and out.shape == shape
    if not flat:
        for x in arrays:
            key += (x.shape, x.steps)
        if out is not None:
            key += ("out", out.shape, out.steps)
    else:
        key.append(first.size >= _SMALL_FLAT)
    device = first.device
    found = tuple(key)
    plan = device.plans.get(found)
    if plan is None:
        plan = _make_plan(device, rule, operands, arrays, out, out_kind, flat)
        if len(device.plans) > 20000:
            device.plans.clear()
        device.plans[found] = plan
    if flat:
        return launch_flat(device, plan, arrays, operands, numbers, first, out)
    if out is None:
        out = empty(device, plan.shape, plan.kind)
        if plan.steps is not None:
            out.steps, out.contiguous = plan.steps, False
    if plan.size:
        layout = plan.pack(*[x.offset for x in arrays], out.offset) + plan.tail
        _launch(device, plan, arrays, operands, numbers, out, layout, plan.global_size)
    return out


def launch_flat(device, plan: Plan, arrays, operands, numbers, first: Array, out: Array | None) -> Array:
    """Start a kernel over contiguous arrays of one shape."""
    size = first.size
    if out is None:
        out = object.__new__(Array)
        out.device, out.shape, out.steps, out.size, out.kind, out.dtype = device, first.shape, first.steps, size, plan.kind, plan.dtype
        out.offset, out.base, out.contiguous = 0, None, True
        out.buffer = device.allocate(size * plan.dtype.itemsize)
    if size:
        layout = plan.pack(*[x.offset for x in arrays], out.offset, size) + plan.tail
        items = -(-size // plan.per_item)
        _launch(device, plan, arrays, operands, numbers, out, layout, (-(-items // _GROUP) * _GROUP,))
    return out


def _launch(device, plan: Plan, arrays, operands, numbers, out: Array, layout: bytes, global_size) -> None:
    kernel, at = plan.kernel, plan.count
    with plan.lock:
        if at == 2:
            kernel._set_arg_multi((0, arrays[0].buffer, 1, out.buffer))
        elif at == 3:
            kernel._set_arg_multi((0, arrays[0].buffer, 1, arrays[1].buffer, 2, out.buffer))
        else:
            for i, x in enumerate(arrays):
                kernel.set_arg(i, x.buffer)
            kernel.set_arg(at - 1, out.buffer)
        kernel._set_arg_buf(at, layout)
        if plan.numbers is not None:
            for x in operands:
                if x.__class__ is not Array:
                    at += 1
                    kernel._set_arg_buf(at, plan.numbers(x))
            for x in numbers:
                at += 1
                kernel._set_arg_buf(at, plan.numbers(x))
        enqueue_nd_range_kernel(device.queue, kernel, global_size, plan.local_size)


# -- planning --


def main_kind(rule: Rule, operands) -> str:
    """The kind that is computed in: what the arrays that are not read as truth values promote to; a float or complex number raises it to that category. "" without arrays."""
    found, number = "", ""
    for letter, x in zip(_LETTERS, operands, strict=False):
        if letter in rule.masks:
            continue
        if x.__class__ is Array:
            found = x.kind if not found or found == x.kind else _promoted(found, x.kind)
        else:
            number = max(number, "c64" if isinstance(x, complex) else "f32" if isinstance(x, float) else "i64" if not isinstance(x, bool) else "b8", key=lambda k: " bifc".index(CATEGORY.get(k, " ")))
    if not found:
        return number
    if number and number[0] == "c" and found not in REAL_KIND:
        return COMPLEX_KIND.get(found, "c64")
    return number if number[:1] == "f" and CATEGORY[found] in "ib" else found


@functools.cache
def _promoted(one: str, other: str) -> str:
    return kind_of(promote_types(ALL[KINDS[one].numpy], ALL[KINDS[other].numpy]).np)


def _result_kind(rule: Rule, kind: str) -> str:
    return "b8" if rule.test else REAL_KIND.get(kind, kind) if rule.out == "real" else COMPLEX_KIND.get(kind, kind) if rule.out == "complex" else rule.out or kind


def number_packer(code: str):
    """A function from a Python number to the bytes of a scalar argument of a struct code."""
    pack = struct.Struct(code).pack
    if len(code) == 2:
        return lambda z: pack(z.real, z.imag) if isinstance(z, complex) else pack(z, 0.0)
    if code in "fd":
        def floating(x):
            try:
                return pack(x)
            except OverflowError:
                return pack(float("inf") if x > 0 else float("-inf"))
            except struct.error:
                return pack(float(x.real))
        return floating
    bits = 8 * struct.calcsize(code)
    low = -(1 << bits - 1) if code.islower() else 0
    return lambda x: pack((int(x) - low) % (1 << bits) + low)


class _Types:
    """The C types of one program: what is computed in (a scalar, and its real part's type), and the struct code of its numbers."""

    __slots__ = ("computed", "real", "code")

    def __init__(self, device, rule: Rule, kind: str):
        how = KINDS[kind]
        self.computed, self.real, self.code = how.computed, KINDS[REAL_KIND.get(kind, kind)].computed, how.pack
        if CATEGORY[kind] in rule.wide and device.fp64 and self.real == "float":
            self.computed, self.real, self.code = how.computed.replace("float", "double"), "double", how.pack.replace("f", "d")


def _make_plan(device, rule: Rule, operands, arrays, out, out_kind: str, flat: bool) -> Plan:
    kind = main_kind(rule, operands) if arrays else out.kind
    plan = Plan()
    plan.kind = out.kind if out is not None else out_kind or _result_kind(rule, kind)
    plan.dtype = dtype_of_kind(plan.kind)
    device.check_kind(plan.kind)
    types = _Types(device, rule, kind)
    plan.count = len(arrays) + 1
    has_numbers = rule.numbers or len(arrays) != len(operands)
    plan.numbers = (_truth_packer if kind == "b8" else number_packer(types.code)) if has_numbers else None
    kinds = [x.kind if x.__class__ is Array else "" for x in operands]
    if flat:
        return _flat_plan(device, plan, rule, kind, types, kinds, operands, out)
    plan.shape = out.shape if out is not None else broadcast_shape([x.shape for x in arrays])
    if out is not None and any(broadcast_shape([x.shape, out.shape]) != out.shape for x in arrays):
        shape = broadcast_shape([out.shape, *(x.shape for x in arrays)])
        raise RuntimeError(f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}")
    plan.steps = None if out is not None else _kept_order(plan.shape, arrays)
    plan.size, usual = row_major(plan.shape)
    target = out.steps if out is not None else plan.steps or usual
    sizes, steps = _ordered(plan.shape, [*(broadcast_steps(x.shape, x.steps, plan.shape) for x in arrays), target])
    if any(s == 0 and n != 1 for n, s in zip(sizes, steps[-1], strict=True)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.")
    plan.pack = struct.Struct(f"{plan.count}i").pack
    if plan.size < _SMALL or len(sizes) > _RANK:
        return _small_plan(device, plan, rule, kind, types, kinds, sizes, steps)
    return _row_plan(device, plan, rule, kind, types, kinds, sizes, steps)


def _truth_packer(x) -> bytes:
    return b"\1" if x else b"\0"


def _ordered(shape, walks):
    """Sizes and steps collapsed, the dimensions put in the order in which the written elements lie in memory."""
    order = sorted(range(len(shape)), key=lambda d: -builtins.abs(walks[-1][d])) if shape else ()
    return collapse([shape[d] for d in order], *([walk[d] for d in order] for walk in walks))


def _kept_order(shape, arrays) -> tuple[int, ...] | None:
    """The steps of the result when all operands of its shape lie in one and the same dense order other than row-major; None for row-major."""
    full = [x for x in arrays if x.shape == shape]
    if not full or full[0].contiguous or any(x.steps != full[0].steps for x in full) or len(full) != len([x for x in arrays if x.size != 1]):
        return None
    return full[0].steps if dense_order(shape, full[0].steps) is not None else None


def _width(device, rule: Rule, kind: str, kinds) -> int:
    """How many elements the vectors of a program hold, 0 for none."""
    category = "d" if kind == "f64" else CATEGORY[kind]
    return 0 if category in rule.scalar or any(k[:1] == "c" for k in kinds) else device.width


def _flat_plan(device, plan, rule, kind, types, kinds, operands, out) -> Plan:
    first = next((x for x in operands if x.__class__ is Array), out)
    plan.pack = struct.Struct(f"{plan.count + 1}i").pack
    if first.size < _SMALL_FLAT:
        plan.tail = struct.pack(f"{_RANK + _RANK * plan.count}i", 1, *[0] * (_RANK - 1), *([1] + [0] * (_RANK - 1)) * plan.count)
        _build(device, plan, rule, kind, types, kinds, 0, _small_walk(kinds, _RANK))
    else:
        plan.tail = b""
        width = _width(device, rule, kind, [*kinds, plan.kind])
        _build(device, plan, rule, kind, types, kinds, width, _flat_walk(kinds), {})
    plan.local_size = (_GROUP,)
    return plan


def _small_plan(device, plan, rule, kind, types, kinds, sizes, steps) -> Plan:
    rank = _RANK if len(sizes) <= _RANK else _MOST
    pad = [0] * (rank - len(sizes))
    tail = [plan.size, len(sizes), *reversed(sizes[1:]), *[0] * (rank - len(sizes))]
    for walk in steps:
        tail += [*reversed(walk), *pad]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    _build(device, plan, rule, kind, types, kinds, 0, _small_walk(kinds, rank))
    plan.local_size = (_GROUP,)
    plan.global_size = (-(-plan.size // (plan.per_item * _GROUP)) * _GROUP,)
    return plan


def _row_plan(device, plan, rule, kind, types, kinds, sizes, steps) -> Plan:
    modes = [{0: "s", 1: "v"}.get(s[-1], "g") for s in steps]
    if "g" in modes and modes[-1] == "v":
        cross = next((d for d in range(len(sizes) - 1) if all(s[d] == 1 for s, mode in zip(steps, modes, strict=True) if mode == "g")), None)
        if cross is not None:
            return _tile_plan(device, plan, rule, kind, types, kinds, sizes, steps, modes, cross)
    width = _width(device, rule, kind, [*kinds, plan.kind]) if "g" not in modes else 0
    outer = len(sizes) - 1
    _build(device, plan, rule, kind, types, kinds, width, _row_walk(kinds, modes, outer), dict(zip([*_slots(kinds), "o"], modes, strict=True)))
    across, down = -(-sizes[-1] // plan.per_item), 1
    for n in sizes[:-1]:
        down *= n
    lx = 1
    while lx < _GROUP and lx < across:
        lx *= 2
    plan.local_size = lx, ly = (lx, _GROUP // lx)
    plan.global_size = (-(-across // lx) * lx, -(-down // ly) * ly)
    tail = [sizes[-1], down, *sizes[:-1]]
    for mode, s in zip(modes, steps, strict=True):
        tail += s if mode == "g" else s[:-1]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    return plan


def _tile_plan(device, plan, rule, kind, types, kinds, sizes, steps, modes, cross: int) -> Plan:
    """Squares over the innermost dimension and the one, `cross`, along which the operands that lie crosswise are contiguous: both are read and written in vectors."""
    width = _width(device, rule, kind, [*kinds, plan.kind])
    side = plan.per_item = width or device.width
    outer = [d for d in range(len(sizes) - 1) if d != cross]
    function = device.function(_tile_source(rule, kind, types, kinds, plan.kind, width, side, modes, len(outer)), "run", "", (width,) if width else (), **_typed(types, kinds, plan.kind))
    plan.kernel, plan.lock = function.kernel, function._lock
    across, tiles = -(-sizes[-1] // side), -(-sizes[cross] // side)
    down = tiles
    for d in outer:
        down *= sizes[d]
    ly = 16
    plan.local_size = (1, ly)  # neighbours write next to each other's rows and read next to each other's columns
    plan.global_size = (across, -(-down // ly) * ly)
    tail = [sizes[-1], sizes[cross], tiles, down, *(sizes[d] for d in outer)]
    for mode, s in zip(modes, steps, strict=True):
        tail += [s[-1] if mode == "g" else s[cross], *(s[d] for d in outer)]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    return plan


# -- program text --


def _slots(kinds) -> list[str]:
    """The letters of the operands that are arrays."""
    return [letter for letter, k in zip(_LETTERS, kinds, strict=False) if k]


def _flat_walk(kinds):
    """(the text that finds a work-item's elements, each operand's place as an expression of `i`, the number of layout integers) for one contiguous run."""
    letters = [*_slots(kinds), "o"]
    return f"    const int n = l.v[{len(letters)}];\n    int i = ITEM * PER;", {letter: f"l.v[{at}] + i" for at, letter in enumerate(letters)}, len(letters) + 1


def _row_walk(kinds, modes, outer: int):
    """The same for rows: work-items along the innermost dimension and over all outer ones."""
    letters = [*_slots(kinds), "o"]
    at = len(letters)
    lines = [f"    const int n = l.v[{at}];\n    int i = ITEM * PER, rest = ITEM_Y;\n    if (rest >= l.v[{at + 1}]) return;"]
    at += 2
    sizes = at
    at += outer
    for d in reversed(range(outer)):
        lines.append(f"    const int at{d} = rest % l.v[{sizes + d}]; rest /= l.v[{sizes + d}];" if d else "    const int at0 = rest;")
    places = {}
    for index, (letter, mode) in enumerate(zip(letters, modes, strict=True)):
        terms = [f"l.v[{index}]", *(f"at{d} * l.v[{at + d}]" for d in range(outer))]
        at += outer
        lines.append(f"    const int base_{letter} = {' + '.join(terms)};")
        places[letter] = f"base_{letter}" if mode == "s" else f"base_{letter} + i"
        if mode == "g":
            places[letter] += f" * l.v[{at}]"
            at += 1
    return "\n".join(lines), places, at


def _small_walk(kinds, rank: int):
    """The same for any layout: each element's place is worked out from its number, dimension by dimension from the innermost one out."""
    letters = [*_slots(kinds), "o"]
    count = len(letters)
    sizes = count + 2
    steps = {letter: sizes + rank - 1 + index * rank for index, letter in enumerate(letters)}
    lines = [f"    const int n = l.v[{count}], rank = l.v[{count + 1}];\n    int i = ITEM * PER;"]
    each = [f"        int rest = i, {', '.join(f'at_{letter} = l.v[{index}]' for index, letter in enumerate(letters))};", "        for (int d = 0; d < rank - 1; d++) {",
            f"            const int size = l.v[{sizes} + d], at = rest % size;", "            rest /= size;", *(f"            at_{letter} += at * l.v[{steps[letter]} + d];" for letter in letters), "        }",
            *(f"        at_{letter} += rest * l.v[{steps[letter]} + rank - 1];" for letter in letters)]
    return "\n".join(lines), {letter: f"at_{letter}" for letter in letters}, sizes + rank - 1 + count * rank, "\n".join(each)


def _build(device, plan: Plan, rule: Rule, kind: str, types: _Types, kinds, width: int, walk, modes=None) -> None:
    """Set the plan's kernel and how many elements a work-item takes."""
    per_item = width or (16 if device.is_cpu else 1)
    source = _source(rule, kind, types, kinds, plan.kind, width, per_item, walk, modes or {})
    function = device.function(source, "run", "", (width,) if width else (), **_typed(types, kinds, plan.kind))
    plan.kernel, plan.lock, plan.per_item = function.kernel, function._lock, per_item


def _typed(types: _Types, kinds, out_kind: str) -> dict[str, str]:
    """The data types of a program's macros."""
    typed = {f"T{i}": k for i, k in enumerate(kinds) if k} | {"TO": out_kind}
    return typed | {"W": "f64"} if types.real == "double" else typed  # W brings the extension


def _source(rule, kind, types, kinds, out_kind, width, per_item, walk, modes) -> str:
    """The program for one rule, its dtypes and a layout class."""
    prologue, places, length, *each = walk
    lines = [*_functions(rule, kind, types, kinds, out_kind, width), _opening(rule, types, kinds, length), prologue.replace("PER", str(per_item))]
    if width:
        loads = _loads(rule, types, kinds, modes, places, str(width))
        lines += [f"    if (i + {width} <= n) {{", f"        TO_ST{width}(o_, {places['o']}, many({loads}));", "        return;", "    }"]
    lines += [f"    const int end = min(i + {per_item}, n);", "    for (; i < end; i++) {", *each, f"        TO_ST(o_, {places['o']}, one({_loads(rule, types, kinds, modes, places, '')}));", "    }\n}"]
    return "\n".join(lines)


def _functions(rule, kind: str, types: _Types, kinds, out_kind: str, width: int) -> list[str]:
    """The functions of a program: what the text calls, and the op over scalars and over vectors."""
    text = rule.text(kind)
    lines = [f"#define S {types.computed}\n#define N(x) ((S)(x))\n#define R {types.real}\n#define R2 {types.real}2\n#define SIGNED ((S)-1 < (S)0)", complex_functions.text_of(text), special.text_of(text),
             _function(rule, text, types, kinds, out_kind, "")]
    return [*lines, _function(rule, text, types, kinds, out_kind, str(width))] if width else lines


def _opening(rule, types: _Types, kinds, length: int) -> str:
    """The head of the kernel: arrays, the layout's integers, numbers."""
    pointers = [f"GLOBAL const T{i}* {letter}_" for i, (letter, k) in enumerate(zip(_LETTERS, kinds, strict=False)) if k]
    numbers = [f"const {types.computed} {name}_" for name in [*(letter for letter, k in zip(_LETTERS, kinds, strict=False) if not k), *rule.numbers]]
    return f"typedef struct {{ int v[{length}]; }} Layout;\nKERNEL void run({', '.join([*pointers, 'GLOBAL TO* o_', 'const Layout l', *numbers])}) {{"


def _tile_source(rule, kind, types, kinds, out_kind, width, side: int, modes, outer: int) -> str:
    """The program of squares; crosswise operands are turned in private memory."""
    letters = [*_slots(kinds), "o"]
    count, at = len(letters), len(letters) + 4
    lines = [f"    const int n = l.v[{count}], m = l.v[{count + 1}], tiles = l.v[{count + 2}], i = ITEM * {side};\n    int rest = ITEM_Y;\n    if (rest >= l.v[{count + 3}]) return;",
             f"    const int j = rest % tiles * {side};\n    rest /= tiles;"]
    sizes, at = at, at + outer
    lines += [f"    const int at{d} = rest % l.v[{sizes + d}]; rest /= l.v[{sizes + d}];" for d in reversed(range(outer))]
    places, loads = {}, []
    for index, (letter, mode) in enumerate(zip(letters, modes, strict=True)):
        terms = [f"l.v[{index}]", *(f"at{d} * l.v[{at + 1 + d}]" for d in range(outer))]
        lines.append(f"    const int step_{letter} = l.v[{at}], base_{letter} = {' + '.join(terms)};")
        places[letter] = f"base_{letter} + (j + y) * step_{letter}" + (" + i + x" if mode == "v" else "") if mode != "g" else f"base_{letter} + (i + x) * step_{letter} + j + y"
        at += 1 + outer
        if mode == "g" and width:
            own, T = KINDS[kinds[_LETTERS.index(letter)]].computed, f"T{_LETTERS.index(letter)}"
            loads.append(f"        {own} tile_{letter}[{side * side}];\n        for (int x = 0; x < {side}; x++) vstore{side}({T}_LD{side}({letter}_, base_{letter} + (i + x) * step_{letter} + j), x, tile_{letter});")
    modes_by = dict(zip(letters, modes, strict=True))
    if width:
        vector = _loads(rule, types, kinds, modes_by, {letter: place.replace(" + x", "") for letter, place in places.items()}, str(width), tiled=True)
        lines += [f"    if (i + {side} <= n && j + {side} <= m) {{", *loads, f"        for (int y = 0; y < {side}; y++) TO_ST{side}(o_, {places['o'].replace(' + x', '')}, many({vector}));", "        return;", "    }"]
    scalar = _loads(rule, types, kinds, modes_by, places, "")
    lines += [f"    for (int y = 0; y < min({side}, m - j); y++)\n        for (int x = 0; x < min({side}, n - i); x++) TO_ST(o_, {places['o']}, one({scalar}));", "}"]
    return "\n".join([*_functions(rule, kind, types, kinds, out_kind, width), _opening(rule, types, kinds, at), *lines])


def _function(rule, text: str, types: _Types, kinds, out_kind: str, w: str) -> str:
    """The C function of the op over values: `one` over scalars, `many` over vectors of `w`."""
    computed, result = types.computed + w, KINDS[out_kind].computed + w
    if w and types.code not in ("f", "d"):
        text = re.sub(r"(?<![\w.])\d+(?![\w.])", r"(S)\g<0>", text)  # a number must not have a higher rank than the elements
    declared = []
    for letter, k in zip(_LETTERS, kinds, strict=False):
        if letter in rule.masks:
            declared.append(f"{_MASK[types.real] + w if w else 'int'} {letter}")
        else:
            declared.append(f"{computed} {letter}")
    declared += [f"{computed} {name}" for name in rule.numbers]
    statements, value = ("", text)
    if "return" in text:
        statements, _, value = text.rpartition("return ")
        value = value.strip().rstrip(";")
    body = f"#define X {computed}\n{result} {'many' if w else 'one'}({', '.join(declared)}) {{\n{statements}    return {_converted(rule, value, types, out_kind, w)};\n}}\n#undef X\n"
    return body


def _converted(rule, value: str, types: _Types, out_kind: str, w: str) -> str:
    """The C text of a value as the result's type."""
    result = KINDS[out_kind].computed
    if rule.test:
        return f"convert_{result}{w}(-({value}))" if w else f"({result})(({value}) != 0)" if out_kind[0] != "c" else f"({result})(({value}) != 0, 0)"
    if out_kind[0] == "c":
        return value if types.computed in (result, result[:-1]) else f"convert_{result}({value})"
    given = types.real
    if given == result:
        return value
    if given in ("float", "double") and _SIZE.get(_MASK[result], 8) < 4 and result not in ("float", "double"):
        return f"convert_{result}{w}(convert_int{w}({value}))"  # what does not fit wraps, as on the host
    if given in ("float", "double") and result in ("uint", "ulong"):
        return f"convert_{result}{w}(convert_long{w}({value}))"
    return f"convert_{result}{w}({value})"


def _loads(rule, types: _Types, kinds, modes, places, w: str, tiled: bool = False) -> str:
    """The arguments of the op's function, loaded at index i."""
    found = []
    for i, (letter, k) in enumerate(zip(_LETTERS, kinds, strict=False)):
        masked, mask = letter in rule.masks, _MASK[types.real]
        if not k:
            text = f"{letter}_" if not w else f"({types.computed}{w})({letter}_)"
            found.append(f"({text} != 0)" if masked else text)
            continue
        own, place = KINDS[k].computed, places[letter]
        if w and modes.get(letter) == "s":
            text = f"({own}{w})(T{i}_LD({letter}_, {place}))"
        elif w and tiled and modes.get(letter) == "g":
            text = f"({own}{w})({', '.join(f'tile_{letter}[{x * int(w)} + y]' for x in range(int(w)))})"
        else:
            text = f"T{i}_LD{w}({letter}_, {place})"
        if masked:
            text = f"(convert_{mask}{w}({text}) != ({mask}{w})(0))" if w else f"({text} != 0)"
        elif own != types.computed:
            text = f"({types.computed})({text}, 0)" if types.computed[-1] == "2" and own[-1] != "2" else f"convert_{types.computed}{w}({text})"
        found.append(text)
    found += [f"({types.computed}{w})({name}_)" if w else f"{name}_" for name in rule.numbers]
    return ", ".join(found)


# -- what other modules use --

_COPY = Rule("copy", f="a", i="a", b="a", c="a")
_TO_BOOL = Rule("to_bool", f="a != 0", i="a != 0", b="a != 0", c="(a.x != 0) | (a.y != 0)", test=True)
_REAL_PART = Rule("real_part", c="a.x", out="real")
_TO_COMPLEX = Rule("to_complex", *["(R2)(a, 0)"] * 3, c="a", scalar="fdib")
_CHOOSE = Rule("where", f="c ? a : b", i="c ? a : b", b="c ? a : b", c="c ? a : b", masks="c")


def cast(x: Array, kind: str, out: Array | None = None) -> Array:
    """`x` converted to another kind, also into `out`; a complex number loses its imaginary part on the way to a real one."""
    if kind == x.kind:
        return apply(_COPY, (x,), (), out)
    rule = _TO_BOOL if kind == "b8" else _TO_COMPLEX if kind in REAL_KIND else _REAL_PART if x.kind in REAL_KIND else _COPY
    return apply(rule, (x,), (), out, "" if out is not None else kind)


def choose(condition: Array, input, other, out: Array | None = None) -> Array:
    """`input` where the condition holds, else `other`; either may be a Python number."""
    return apply(_CHOOSE, (input, other, condition), (), out)


def fill_number(target: Array, value) -> None:
    """Set all elements of an array to a Python number."""
    apply(_COPY, (value,), (), target)
