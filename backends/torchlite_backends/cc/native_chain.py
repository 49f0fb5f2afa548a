"""Native chains of elementwise float32 ops: a compiled interpreter runs them block by block.

A compiled program of `torch.compile` has a kernel of its own for each chain, which a compiler builds. The interpreter
is built once for all chains. Its registers are blocks of numbers that stay in the first-level cache.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from torchlite_backends.array.special_coefficients import NORMAL_TANH
from torchlite_backends.kernel_sources.c_preamble import CPP

from .device import address
from .native_kernel import F32, TYPE_DEFINITIONS

# Dtypes of arrays: a chain computes in float32, and casts 8-bit integers at its beginning and end.
_DTYPES = (F32, np.dtype("u1"), np.dtype("i1"))
_BLOCK, _REGISTERS = 512, 32  # numbers of a block; registers of a chain
# Ops of one and two operands, as functions of vectors. `N` is their native type, which `?:` takes.
_OPS = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "neg": "-a", "abs": "fabs(a)",
    "square": "a * a", "sqrt": "sqrt(a)", "reciprocal": "one / a", "rsqrt": "one / sqrt(a)",
    "relu": "V(a.v < 0.0f ? N{} : a.v)", "relu6": "V(limited(a.v))", "leaky_relu": "V(a.v > 0.0f ? a.v : a.v * b.v)",
    "maximum": "V((a.v > b.v) | (a.v != a.v) ? a.v : b.v)", "minimum": "V((a.v < b.v) | (a.v != a.v) ? a.v : b.v)",
    "clamp_min": "V((a.v < b.v) | (b.v != b.v) ? b.v : a.v)", "clamp_max": "V((a.v > b.v) | (b.v != b.v) ? b.v : a.v)",
    "hardsigmoid": "V(limited(a.v + 3.0f) / 6.0f)", "hardswish": "V(a.v * limited(a.v + 3.0f) / 6.0f)",
    "floor": "floor(a)", "ceil": "ceil(a)", "round": "rint(a)", "trunc": "trunc(a)",
    "exp": "exp(a)", "log": "log(a)", "tanh": "tanh(a)", "erf": "erf(a)", "sin": "sin(a)", "cos": "cos(a)",
    "sigmoid": "one / (one + exp(-a))", "silu": "a / (one + exp(-a))", "gelu": "normal(a)", "pow": "pow(a, b)",
}  # fmt: skip
_NAMES = tuple(_OPS)
# Times of ops that take longer than the others. A unit is a fifteenth of a nanosecond.
_COSTLY = {
    "sqrt": 6, "rsqrt": 12, "exp": 6, "log": 180, "tanh": 22, "erf": 36, "sin": 14, "cos": 14, "sigmoid": 10,
    "silu": 10, "gelu": 18, "pow": 300,
}  # fmt: skip
_POWERS = ", ".join(f"{-2 / math.log(2) * c!r}" for c in NORMAL_TANH)

SOURCE = (
    TYPE_DEFINITIONS
    + CPP
    + f"const i64 LENGTH = {_BLOCK}, REGISTERS = {_REGISTERS};\n"
    + r"""
#if defined(__AVX512F__)
const int W = 16;
#elif defined(__AVX__) || !defined(__x86_64__)
const int W = 8;
#else
const int W = 4;
#endif
typedef Vector<float, W> V;
// `operands` are rows of five: a register; 0 for an array, 1 for a number, 2 for an array that is repeated, 3 for a
// result; for a repeated array the length of a run of one number and how many numbers there are, for a number its bits;
// the dtype, 0 for float32, 1 for uint8, 2 for int8.
// `code` are rows of four: an op and registers of the result and of two operands. Behind the struct are the addresses
// of the arrays and results, in the order of `operands`.
struct Chain { const i64 *operands, *code; i64 operand_count, code_length, n; };
typedef V::Native N;
static INLINE N limited(N t) {
    t = t < 0.0f ? N{} : t;
    return t > 6.0f ? N{} + 6.0f : t;
}
static INLINE V normal(V x) {
    const float powers[] = {"""
    + _POWERS
    + r"""};
    V square = x * x, p(powers[0]);
    for (int k = 1; k < int(sizeof powers / sizeof *powers); k++) p = p * square + V(powers[k]);
    return x / (exp2(p * x) + V(1.0f));
}
static void repeated(float* to, const float* from, i64 start, i64 n, i64 run, i64 count) {
    i64 at = start / run % count, left = run - start % run;
    for (i64 i = 0; i < n;) {
        const i64 last = least(n, i + left);
        const float value = from[at];
        for (; i < last; i++) to[i] = value;
        left = run;
        if (++at == count) at = 0;
    }
}
static void repeated_rows(float* to, const float* from, i64 start, i64 n, i64 count) {
    i64 at = start % count;
    for (i64 i = 0; i < n;) {
        const i64 m = least(n - i, count - at);
        memcpy(to + i, from + at, m * 4);
        i += m;
        at = 0;
    }
}
template <class T> static void widened(float* to, const void* from, i64 start, i64 n) {
    const T* x = (const T*)from + start;
    for (i64 i = 0; i < n; i++) to[i] = x[i];
}
template <class T> static void narrowed(void* to, const float* from, i64 start, i64 n) {
    T* x = (T*)to + start;
    for (i64 i = 0; i < n; i++) x[i] = (T)(int)from[i];
}
template <class F> static inline void each(float* d, const float* a, const float* b, i64 m, F f) {
    for (i64 i = 0; i < m; i += W) store_cells(d + i, 0, f(load_cells<W>(a + i, 0), load_cells<W>(b + i, 0)));
}
static int chain(const Chain& of, i64 begin, i64 end) {
    alignas(64) float memory[REGISTERS * LENGTH];
    float* registers[REGISTERS];
    float* const* arrays = (float* const*)(&of + 1);
    const V one(1.0f);
    for (i64 k = 0; k < REGISTERS; k++) registers[k] = memory + k * LENGTH;
    for (i64 k = 0; k < of.operand_count; k++) {
        const i64* operand = of.operands + 5 * k;
        if (operand[1] != 1) continue;
        float value;
        memcpy(&value, operand + 2, 4);
        for (i64 i = 0; i < LENGTH; i++) registers[operand[0]][i] = value;
    }
    for (i64 block = begin; block < end; block++) {
        const i64 start = block * LENGTH, n = least(LENGTH, of.n - start);
        float* const* array = arrays;
        for (i64 k = 0; k < of.operand_count; k++) {
            const i64* operand = of.operands + 5 * k;
            float* const to = memory + operand[0] * LENGTH;
            // Vectors are computed as a whole: a last, short block is computed in the registers.
            if (operand[4]) {
                registers[operand[0]] = to;
                if (operand[1] == 0) {
                    if (operand[4] == 1) widened<uint8_t>(to, *array, start, n);
                    else widened<int8_t>(to, *array, start, n);
                }
            } else if (operand[1] == 0) {
                if (n == LENGTH) registers[operand[0]] = *array + start;
                else {
                    registers[operand[0]] = to;
                    memcpy(to, *array + start, n * 4);
                }
            } else if (operand[1] == 2 && operand[2] > 1) repeated(to, *array, start, n, operand[2], operand[3]);
            else if (operand[1] == 2) repeated_rows(to, *array, start, n, operand[3]);
            else if (operand[1] == 3) registers[operand[0]] = n == LENGTH ? *array + start : to;
            if (operand[1] != 1) array++;
        }
        for (i64 k = 0; k < of.code_length; k++) {
            const i64* row = of.code + 4 * k;
            float* d = registers[row[1]];
            const float *a = registers[row[2]], *b = registers[row[3]];
            const i64 m = (n + W - 1) / W * W;
            switch (row[0]) {
"""
    + "".join(
        f"            case {number}: each(d, a, b, m, [one](V a, V b) -> V {{ return {text}; }}); break;\n"
        for number, text in enumerate(_OPS.values())
    )
    + r"""
            }
        }
        array = arrays;
        for (i64 k = 0; k < of.operand_count; k++) {
            const i64* operand = of.operands + 5 * k;
            const float* from = registers[operand[0]];
            if (operand[1] == 3) {
                if (operand[4] == 1) narrowed<uint8_t>(*array, from, start, n);
                else if (operand[4]) narrowed<int8_t>(*array, from, start, n);
                else if (n < LENGTH) memcpy(*array + start, from, n * 4);
            }
            if (operand[1] != 1) array++;
        }
    }
    return 0;
}
ENTRY(chain, Chain)
}
"""
)


_BINARY = frozenset(("add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow", "leaky_relu"))
_ARRAY, _NUMBER, _REPEATED, _RESULT = range(4)  # kinds of operands


def serves(name: str, count: int, dtypes: list) -> bool:
    """True if a chain may have an op of operands and a result of these dtypes."""
    if name == "to":
        return len(dtypes) == 2 and sum(dtype == F32 for dtype in dtypes) == 1 and all(d in _DTYPES for d in dtypes)
    return has_op(name, count) and all(dtype == F32 for dtype in dtypes)


def has_op(name: str, count: int) -> bool:
    """True if the interpreter has an op with so many operands."""
    if name == "_clamp_scalars":  # two steps of a chain
        return count == 3
    return name in _NAMES and count == 1 + (name in _BINARY)


def _simplify(step: tuple) -> tuple:
    """Return a step that computes the same faster."""
    name, operands = step
    is_square = name == "pow" and operands[1].__class__ is float and operands[1] == 2.0
    return ("square", operands[:1]) if is_square else step


class _Builder:
    """Registers and code of a chain. Values are numbered: first the arrays, then the results of the steps. dtypes: of
    the values that are not float32.
    """

    def __init__(self, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: dict) -> None:
        self.shape, self.given, self.outs, self.dtypes = shape, given, outs, dtypes
        self.operands: list[tuple[int, int, int, int, int]] = []
        self.code: list[tuple[int, int, int, int]] = []
        self.registers: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # registers by the bits of their number
        self.order: list[int] = []  # values whose arrays the interpreter gets
        self.count = 0
        for value, given_shape in enumerate(given):
            self._add_array(value, given_shape)
        for value in outs:
            self._add_operand(value, _RESULT)
        last = {v: at for at, (_, operands) in enumerate(steps) for v in operands if v.__class__ is int}
        free: list[int] = []
        for at, (name, operands) in enumerate(map(_simplify, steps)):
            sources = [self._register(v) for v in operands]
            value = len(given) + at
            for v in {v for v in operands if v.__class__ is int and v >= len(given) and v not in outs}:
                if last[v] == at:
                    free.append(self.registers[v])
            if value not in self.registers:
                self.registers[value] = free.pop() if free else self._new_register()
            self.code.append((_NAMES.index(name), self.registers[value], sources[0], sources[-1]))

    def _new_register(self) -> int:
        self.count += 1
        return self.count - 1

    def _register(self, value: Any) -> int:
        """Return the register of a value, or of a number, which is a float."""
        if value.__class__ is int:
            return self.registers[value]
        (bits,) = struct.unpack("i", struct.pack("f", value))
        found = self.numbers.get(bits)
        if found is None:
            found = self.numbers[bits] = self._new_register()
            self.operands.append((found, _NUMBER, bits, 0, 0))
        return found

    def _add_operand(self, value: int, kind: int, run: int = 0, count: int = 0) -> None:
        self.registers[value] = self._new_register()
        self.order.append(value)
        dtype = _DTYPES.index(self.dtypes.get(value, F32))
        if dtype and kind == _REPEATED:
            raise ValueError("an array of 8-bit integers is repeated")
        self.operands.append((self.registers[value], kind, run, count, dtype))

    def _add_array(self, value: int, given: tuple) -> None:
        rank = len(self.shape)
        whole = (1,) * (rank - len(given)) + given
        own = [d for d in range(rank) if whole[d] != 1]
        if whole == self.shape:
            self._add_operand(value, _ARRAY)
        elif all(whole[d] == self.shape[d] for d in range(min(own, default=0), max(own, default=-1) + 1)):
            run = math.prod(self.shape[max(own, default=-1) + 1 :])
            self._add_operand(value, _REPEATED, run, math.prod(whole))
        else:
            raise ValueError("an array is repeated along dimensions between others")


class Chain:
    """The function of row-major float32 arrays that returns the results of a chain, one array or a tuple."""

    text = ""

    def __init__(self, device: Any, launcher: Any, built: _Builder) -> None:
        self._launcher, self.shape, self.results = launcher, built.shape, len(built.outs)
        self._dtypes = [built.dtypes.get(value, F32) for value in built.outs]
        self._held = np.array(built.operands, np.int64), np.array(built.code, np.int64)
        size = math.prod(built.shape)
        self.head = struct.pack("5q", *map(address, self._held), len(built.operands), len(built.code), size)
        self._pack = struct.Struct(f"{len(built.order)}q").pack
        self._count = -(-size // _BLOCK)
        self._scalars = () in built.given
        self._work = size * (len(built.order) + sum(_COSTLY.get(_NAMES[op], 1) for op, *_ in built.code))

    block = _BLOCK

    @property
    def entry_address(self) -> int:
        """The address of the function that runs some blocks."""
        return self._launcher.run_address

    def kinds_by_row(self, row: int) -> list[int] | None:
        """Return for each array and result whether it has a number for each of the chain's (1), or the same numbers for
        each `row` of them (0). None if an array has another form, or is not of float32.
        """
        found = []
        for _, kind, run, count, dtype in self._held[0].tolist():
            if dtype or kind == _REPEATED and row % (run * count) and count != 1:
                return None
            if kind != _NUMBER:
                found.append(int(kind != _REPEATED))
        return found

    def __call__(self, *arrays: Any) -> Any:
        if self._scalars:  # NumPy's functions return a number for an array without dimensions
            arrays = tuple(map(np.asarray, arrays))
        outs = [np.empty(self.shape, dtype) for dtype in self._dtypes]
        given = self.head + self._pack(*map(address, arrays), *map(address, outs))
        self._launcher.launch(given, 0, self._count, self._work)
        return outs[0] if self.results == 1 else tuple(outs)


def bind_chain(
    device: Any, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: dict[int, Any] | None = None
) -> Chain | None:
    """Return a chain, None if the interpreter does not serve it.

    given: shapes of the arrays, which broadcast to `shape`. steps: an op and its operands, integers for values and
    floats for numbers. outs: the values that are results. dtypes: the 8-bit dtypes of values, which lie in their range.
    """
    try:
        built = _Builder(shape, given, steps, outs, dtypes or {})
    except ValueError:
        return None
    return None if built.count > _REGISTERS else Chain(device, device.native(SOURCE, "chain"), built)
