"""Generation of pointwise kernel programs, for a rule, its dtypes and a layout class."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchlite._types.dtypes import BY_NAME

from . import complex_functions, special_functions
from .dtype_kinds import CATEGORY, KINDS, REAL_KIND

LETTERS = "abcdefgh"
# The signed integer types that OpenCL's vector comparisons give, by computed type.
_MASK = {
    "uchar": "char", "char": "char", "short": "short", "ushort": "short", "int": "int", "uint": "int", "long": "long",
    "ulong": "long", "float": "int", "double": "long",
}  # fmt: skip
# Sums of positions and sizes could overflow int: differences cannot.
_START = "    if (ITEM > (n - 1) / PER) return;\n    int i = ITEM * PER;"
_SIZE = {"char": 1, "short": 2, "int": 4, "long": 8}


class Rule:
    """Pointwise op: C text for floating (f; d for double if it differs), integer (i), bool (b) and complex (c)
    operands.

    The text is an expression or, with `return`, statements. `X` is the compute type, a scalar or a vector of it, `S`
    its scalar, `N(1.5)` a number of it. It may call the functions of `special_functions` and `complex_functions`.
    `by_kind` has texts for single kinds.

    scalar: the categories whose text does not work on vectors (complex texts never do). wide: those computed in double,
    one by one, if the device has it. test: the text is a boolean. masks: operands read as booleans. numbers: further
    scalar parameters. out: the result's kind if it differs ("real" or "complex": the corresponding one). kernel: the
    name in the message for an unsupported dtype; refuses: category -> another exception.
    """

    __slots__ = ("name", "texts", "scalar", "test", "masks", "numbers", "wide", "out", "kernel", "refuses")

    def __init__(
        self,
        name: str,
        f: str = "",
        i: str = "",
        b: str = "",
        c: str = "",
        d: str = "",
        *,
        by_kind: dict[str, str] | None = None,
        scalar: str = "",
        wide: str = "",
        test: bool = False,
        masks: str = "",
        numbers: tuple[str, ...] = (),
        out: str = "",
        kernel: str = "",
        refuses: dict[str, Exception] | None = None,
    ):
        self.name, self.texts = name, {"f": f, "f64": d or f, "i": i, "b": b, "c": c, **(by_kind or {})}
        self.scalar = scalar + wide + ("dc" if "f" in wide else "c")
        self.test, self.masks, self.numbers, self.wide, self.out = test, masks, numbers, wide, out
        self.kernel, self.refuses = kernel or f"{name}_cpu", refuses or {}

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def text(self, kind: str) -> str:
        """Return the C text for a kind. Raises PyTorch's error for an unsupported one."""
        category = CATEGORY[kind]
        text = self.texts.get(kind) or self.texts[category]
        if not text:
            if category in self.refuses:
                raise self.refuses[category].__class__(*self.refuses[category].args)
            raise NotImplementedError(
                f"\"{self.kernel}\" not implemented for '{BY_NAME[KINDS[kind].numpy].scalar_name}'"
            )
        return text


class ComputeTypes:
    """C types of a program: the compute type (a scalar, and its real type), the struct code of its numbers, and whether
    rules work on vectors.
    """

    __slots__ = ("computed", "real", "code", "vectors")

    def __init__(self, device, rule: Rule, kind: str):
        how = KINDS[kind]
        self.computed, self.real, self.code = how.computed, KINDS[REAL_KIND.get(kind, kind)].computed, how.pack
        self.vectors = device.vectors
        if CATEGORY[kind] in rule.wide and device.fp64 and self.real == "float":
            self.computed, self.real, self.code = (
                how.computed.replace("float", "double"),
                "double",
                how.pack.replace("f", "d"),
            )


def list_array_letters(kinds) -> list[str]:
    """Return the letters of the operands that are arrays."""
    return [letter for letter, k in zip(LETTERS, kinds, strict=False) if k]


def make_flat_indexing(kinds):
    """Return the indexing of one contiguous run: the code that finds a work-item's elements, the operands' indices as
    expressions of `i`, the length of the layout.
    """
    letters = [*list_array_letters(kinds), "o"]
    prologue = f"    const int n = l.v[{len(letters)}];\n{_START}"
    return prologue, {letter: f"l.v[{at}] + i" for at, letter in enumerate(letters)}, len(letters) + 1


def make_row_indexing(kinds, modes, outer: int):
    """Return the indexing of rows: work-items along the innermost dimension and over all outer ones."""
    letters = [*list_array_letters(kinds), "o"]
    at = len(letters)
    lines = [f"    const int n = l.v[{at}];\n    int rest = ITEM_Y;\n    if (rest >= l.v[{at + 1}]) return;\n{_START}"]
    at += 2
    sizes = at
    at += outer
    for d in reversed(range(outer)):
        lines.append(
            f"    const int at{d} = rest % l.v[{sizes + d}]; rest /= l.v[{sizes + d}];"
            if d
            else "    const int at0 = rest;"
        )
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


def make_strided_indexing(kinds, rank: int):
    """Return the indexing of any layout: each element's offset is computed from its number, innermost dimension
    first.
    """
    letters = [*list_array_letters(kinds), "o"]
    count = len(letters)
    sizes = count + 2
    steps = {letter: sizes + rank - 1 + index * rank for index, letter in enumerate(letters)}
    lines = [f"    const int n = l.v[{count}], rank = l.v[{count + 1}];\n{_START}"]
    starts = ", ".join(f"at_{letter} = l.v[{index}]" for index, letter in enumerate(letters))
    each = [
        f"        int rest = i, {starts};\n        FEW_TIMES for (int d = 0; d < rank - 1; d++) {{",
        f"            const int size = l.v[{sizes} + d], at = rest % size;\n            rest /= size;",
        *(f"            at_{letter} += at * l.v[{steps[letter]} + d];" for letter in letters),
        "        }",
        *(f"        at_{letter} += rest * l.v[{steps[letter]} + rank - 1];" for letter in letters),
    ]
    return (
        "\n".join(lines),
        {letter: f"at_{letter}" for letter in letters},
        sizes + rank - 1 + count * rank,
        "\n".join(each),
    )


def choose_macro_kinds(types: ComputeTypes, kinds, out_kind: str) -> dict[str, str]:
    """Return the kinds of a program's macros."""
    typed = {f"T{i}": k for i, k in enumerate(kinds) if k} | {"TO": out_kind}
    return typed | {"W": "f64"} if types.real == "double" else typed  # W brings the extension


def kernel_source(rule, kind, types, kinds, out_kind, width, per_item, walk, modes) -> str:
    """Return the program for a rule, its dtypes and a layout class."""
    prologue, places, length, *each = walk
    lines = [
        *_functions_source(rule, kind, types, kinds, out_kind, width),
        _kernel_head_source(rule, types, kinds, length),
        prologue.replace("PER", str(per_item)),
    ]
    if width:
        loads = _loads_source(rule, types, kinds, modes, places, str(width))
        lines += [
            f"    if (n - i >= {width}) {{",
            f"        TO_ST{width}(o_, {places['o']}, many({loads}));",
            "        return;",
            "    }",
        ]
    loads = _loads_source(rule, types, kinds, modes, places, "")
    lines += [
        f"    const int end = n - i < {per_item} ? n : i + {per_item};\n    FEW_TIMES for (; i < end; i++) {{",
        *each,
        f"        TO_ST(o_, {places['o']}, one({loads}));\n    }}\n}}",
    ]
    return "\n".join(lines)


def _functions_source(rule, kind: str, types: ComputeTypes, kinds, out_kind: str, width: int) -> list[str]:
    """Return a program's functions: those that the text calls, and the op over scalars and vectors."""
    text = rule.text(kind)
    lines = [_find_called_functions(text, types), _op_function_source(rule, text, types, kinds, out_kind, "")]
    return [*lines, _op_function_source(rule, text, types, kinds, out_kind, str(width))] if width else lines


def _find_called_functions(text: str, types: ComputeTypes) -> str:
    """Return the function names in rules' texts, and the functions that they call."""
    names = (
        f"#define S {types.computed}\n"
        "#define N(x) ((S)(x))\n"
        f"#define R {types.real}\n"
        f"#define R2 {types.real}2\n"
        "#define SIGNED ((S)-1 < (S)0)\n"
    )
    return names + complex_functions.source_of(text) + special_functions.source_of(text)


class ChainIndexing(NamedTuple):
    """Indexing of a fused chain's arrays: code that finds a work-item's elements, the indices of inputs and outputs.

    Also whether an input is a single element per row, and the length of the layout.
    """

    prologue: str
    inputs: list[str]
    outputs: list[str]
    single: list[bool]
    length: int


def make_flat_chain_indexing(inputs: int, outputs: int) -> ChainIndexing:
    """Return the indexing of contiguous arrays of one shape."""
    count = inputs + outputs
    places = [f"l.v[{j}] + i" for j in range(count)]
    prologue = f"    const int n = l.v[{count}];\n{_START}"
    return ChainIndexing(prologue, places[:inputs], places[inputs:], [False] * inputs, count + 1)


def make_row_chain_indexing(modes: list[str], outer: int) -> ChainIndexing:
    """Return the indexing of rows of inputs with these modes ("v", "s") and, last, of the outputs."""
    prologue, places, length = make_row_indexing(["T"] * (len(modes) - 1), modes, outer)
    inputs = [places[letter] for letter in LETTERS[: len(modes) - 1]]
    return ChainIndexing(prologue, inputs, [places["o"]] * len(LETTERS), [mode == "s" for mode in modes[:-1]], length)


class ChainSource(NamedTuple):
    """Source of a fused chain: called functions, statements over inputs `i0`, `i1`, … with results `r0`, …, numbers.

    The statements exist for single elements and for vectors. `written` marks the stored results.
    """

    functions: list[str]
    scalar: list[str]
    vector: list[str]
    numbers: list[str]
    stores: list[int]


def chain_source(device, links, kind: str, width: int, written) -> ChainSource:
    """Return the source of several rules over arrays of one kind.

    A link is (rule, its operands, its parameters as in `lazy_fusion.make_parameter_names`); `written` marks the stored
    results.
    """
    lines = [
        device.fence,
        _find_called_functions(
            "\n".join(rule.text(kind) for rule, *_ in links), ComputeTypes(device, links[0][0], kind)
        ),
    ]
    fenced = "FENCED" if device.fence else ""
    found = ChainSource(lines, [], [], [], [at for at, w in enumerate(written) if w])
    for at, (rule, operands, given) in enumerate(links):
        for w in ("", str(width)):
            lines.append(
                _op_function_source(
                    rule, rule.text(kind), ComputeTypes(device, rule, kind), [kind] * operands, kind, w, str(at)
                )
            )
        for parameters, w in ((found.scalar, ""), (found.vector, str(width))):
            arguments = []
            for place, word in enumerate(given):
                number = f"n{at}_{place}_"
                arguments.append((f"({KINDS[kind].computed}{w})({number})" if w else number) if word == "n" else word)
            call = f"{'many' if w else 'one'}{at}({', '.join(arguments)})"
            parameters.append(f"const {KINDS[kind].computed}{w} r{at} = {f'{fenced}({call})' if fenced else call};")
        places = [place for place, word in enumerate(given) if word == "n"]
        found.numbers.extend(f"const {KINDS[kind].computed} n{at}_{place}_" for place in places)
    return found


def chain_body_source(text: ChainSource, kind: str, inputs: int, walk: ChainIndexing, w: str) -> list[str]:
    """Return a chain's statements with loads and stores, for vectors of `w` elements or for one."""

    def load_source(j: int) -> str:
        loaded = f"T_LD{'' if walk.single[j] else w}(i{j}_, {walk.inputs[j]})"
        return f"({KINDS[kind].computed}{w})({loaded})" if w and walk.single[j] else loaded

    return [
        *(f"const {KINDS[kind].computed}{w} i{j} = {load_source(j)};" for j in range(inputs)),
        *(text.vector if w else text.scalar),
        *(f"T_ST{w}(o{at}_, {walk.outputs[k]}, r{at});" for k, at in enumerate(text.stores)),
    ]


def chain_kernel_source(device, links, kind: str, width: int, inputs: int, written, walk: ChainIndexing) -> str:
    """Return the program of a chain."""
    text = chain_source(device, links, kind, width, written)
    pointers = [*(f"GLOBAL const T* i{j}_" for j in range(inputs)), *(f"GLOBAL T* o{at}_" for at in text.stores)]
    vector, scalar = (
        ["        " + line for line in chain_body_source(text, kind, inputs, walk, w)] for w in (str(width), "")
    )
    lines = [
        *text.functions,
        f"typedef struct {{ int v[{walk.length}]; }} Layout;",
        f"KERNEL void run({', '.join([*pointers, 'const Layout l', *text.numbers])}) {{",
        walk.prologue.replace("PER", str(width)),
        f"    if (n - i >= {width}) {{",
        *vector,
        "        return;\n    }",
        "    FEW_TIMES for (; i < n; i++) {",
        *scalar,
        "    }\n}",
    ]
    return "\n".join(lines)


def _kernel_head_source(rule, types: ComputeTypes, kinds, length: int) -> str:
    """Return the kernel's head: arrays, the layout's integers, numbers."""
    pointers = [f"GLOBAL const T{i}* {letter}_" for i, (letter, k) in enumerate(zip(LETTERS, kinds, strict=False)) if k]
    numbers = [
        f"const {types.computed} {name}_"
        for name in [*(letter for letter, k in zip(LETTERS, kinds, strict=False) if not k), *rule.numbers]
    ]
    return (
        f"typedef struct {{ int v[{length}]; }} Layout;\n"
        f"KERNEL void run({', '.join([*pointers, 'GLOBAL TO* o_', 'const Layout l', *numbers])}) {{"
    )


def tile_kernel_source(rule, kind, types, kinds, out_kind, width, side: int, modes, outer: int) -> str:
    """Return the program of tiles; transposed operands are transposed in private memory."""
    letters = [*list_array_letters(kinds), "o"]
    count, at = len(letters), len(letters) + 4
    lines = [
        f"    const int n = l.v[{count}], m = l.v[{count + 1}], tiles = l.v[{count + 2}], i = ITEM * {side};\n"
        "    int rest = ITEM_Y;",
        f"    if (rest >= l.v[{count + 3}]) return;\n    const int j = rest % tiles * {side};\n    rest /= tiles;",
    ]
    sizes, at = at, at + outer
    lines += [
        f"    const int at{d} = rest % l.v[{sizes + d}]; rest /= l.v[{sizes + d}];" for d in reversed(range(outer))
    ]
    places, loads = {}, []
    for index, (letter, mode) in enumerate(zip(letters, modes, strict=True)):
        terms = [f"l.v[{index}]", *(f"at{d} * l.v[{at + 1 + d}]" for d in range(outer))]
        lines.append(f"    const int step_{letter} = l.v[{at}], base_{letter} = {' + '.join(terms)};")
        along = (
            "(i + x) * step_{} + j + y" if mode == "g" else "(j + y) * step_{}" + (" + i + x" if mode == "v" else "")
        )
        places[letter] = f"base_{letter} + {along.format(letter)}"
        at += 1 + outer
        if mode == "g" and width:
            own, T = KINDS[kinds[LETTERS.index(letter)]].computed, f"T{LETTERS.index(letter)}"
            row = f"{T}_LD{side}({letter}_, base_{letter} + (i + x) * step_{letter} + j)"
            loads.append(
                f"        {own} tile_{letter}[{side * side}];\n"
                f"        for (int x = 0; x < {side}; x++) vstore{side}({row}, x, tile_{letter});"
            )
    modes_by = dict(zip(letters, modes, strict=True))
    if width:
        vector = _loads_source(
            rule,
            types,
            kinds,
            modes_by,
            {letter: place.replace(" + x", "") for letter, place in places.items()},
            str(width),
            tiled=True,
        )
        store = f"TO_ST{side}(o_, {places['o'].replace(' + x', '')}, many({vector}));"
        lines += [
            f"    if (n - i >= {side} && m - j >= {side}) {{",
            *loads,
            f"        for (int y = 0; y < {side}; y++) {store}",
            "        return;\n    }",
        ]
    scalar = _loads_source(rule, types, kinds, modes_by, places, "")
    lines += [
        f"    for (int y = 0; y < min({side}, m - j); y++)\n        for (int x = 0; x < min({side}, n - i); x++)",
        f"            TO_ST(o_, {places['o']}, one({scalar}));\n}}",
    ]
    return "\n".join(
        [
            *_functions_source(rule, kind, types, kinds, out_kind, width),
            _kernel_head_source(rule, types, kinds, at),
            *lines,
        ]
    )


def _op_function_source(rule, text: str, types: ComputeTypes, kinds, out_kind: str, w: str, suffix: str = "") -> str:
    """Return the op's C function over values: `one` over scalars, `many` over vectors of `w`, and a suffix."""
    computed, result = types.computed + w, KINDS[out_kind].computed + w
    if w and types.code not in ("f", "d"):
        text = re.sub(
            r"(?<![\w.])\d+(?![\w.])", r"(S)\g<0>", text
        )  # a number must not have a higher rank than the elements
    declared = []
    for letter in LETTERS[: len(kinds)]:
        if letter in rule.masks:
            declared.append(f"{_MASK[types.real] + w if w else 'int'} {letter}")
        else:
            declared.append(f"{computed} {letter}")
    declared += [f"{computed} {name}" for name in rule.numbers]
    statements, value = ("", text)
    if "return" in text:
        statements, _, value = text.rpartition("return ")
        value = value.strip().rstrip(";")
    head = f"FUNCTION {result} {'many' if w else 'one'}{suffix}({', '.join(declared)}) {{\n"
    if w and not types.vectors:
        each = ", ".join(f"{given.split()[-1]}[k]" for given in declared)
        return (
            f"{head}    {result} r;\n    for (int k = 0; k < {w}; k++) r[k] = one{suffix}({each});\n    return r;\n}}\n"
        )
    head = f"#define X {computed}\n{head}"
    return f"{head}{statements}    return {_convert_value(rule, value, types, out_kind, w)};\n}}\n#undef X\n"


def _convert_value(rule, value: str, types: ComputeTypes, out_kind: str, w: str) -> str:
    """Return the C text of a value converted to the result's type."""
    result = KINDS[out_kind].computed
    if rule.test:
        return (
            f"convert_{result}{w}(-({value}))"
            if w
            else f"({result})(({value}) != 0)"
            if out_kind[0] != "c"
            else f"VEC2({result}, ({value}) != 0, 0)"
        )
    if out_kind[0] == "c":
        return value if types.computed in (result, result[:-1]) else f"convert_{result}({value})"
    given = types.real
    if given == result:
        return value
    if given in ("float", "double") and _SIZE.get(_MASK[result], 8) < 4 and result not in ("float", "double"):
        return f"convert_{result}{w}(convert_int{w}({value}))"  # out-of-range values wrap, as on the host
    if given in ("float", "double") and result in ("uint", "ulong"):
        return f"convert_{result}{w}(convert_long{w}({value}))"
    return f"convert_{result}{w}({value})"


def _loads_source(rule, types: ComputeTypes, kinds, modes, places, w: str, tiled: bool = False) -> str:
    """Return the arguments of the op's function, loaded at index i."""
    found = []
    for i, (letter, k) in enumerate(zip(LETTERS, kinds, strict=False)):
        masked, mask = letter in rule.masks, _MASK[types.real]
        if not k:
            text = f"{letter}_" if not w else f"({types.computed}{w})({letter}_)"
            found.append(f"({text} != 0)" if masked else text)
            continue
        own, place = KINDS[k].computed, places[letter]
        if w and modes.get(letter) == "s":
            text = f"({own}{w})(T{i}_LD({letter}_, {place}))"
        elif w and tiled and modes.get(letter) == "g":
            lanes = ", ".join(f"tile_{letter}[{x * int(w)} + y]" for x in range(int(w)))
            text = f"VEC{w}({own}{w}, {lanes})"
        else:
            text = f"T{i}_LD{w}({letter}_, {place})"
        if masked:
            text = f"(convert_{mask}{w}({text}) != ({mask}{w})(0))" if w else f"({text} != 0)"
        elif own != types.computed:
            text = (
                f"VEC2({types.computed}, {text}, 0)"
                if types.computed[-1] == "2" and own[-1] != "2"
                else f"convert_{types.computed}{w}({text})"
            )
        found.append(text)
    found += [f"({types.computed}{w})({name}_)" if w else f"{name}_" for name in rule.numbers]
    return ", ".join(found)
