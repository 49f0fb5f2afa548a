"""The steps of recurrent layers of files: RNN, GRU and LSTM with ONNX's options (`_recurrent_steps`).

All directions run in one loop, each step over arrays (D, N, ...): a direction that runs backwards reads and writes
reversed copies. The logistic function is 1/2 + tanh(x / 2) / 2. Where all functions are the usual ones, the sums of
logistic gates are halved before the loop, in the weights and the inputs, and one tanh serves several gates.

A state that is rounded to 8-bit levels is multiplied as whole numbers in floating point, which is exact
(`torchlite_backends.numpy.quantized`). An engine runs all steps in one call.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .blas import has_avx512_kernels, single_threaded
from .cache_blocking import parallel_for
from .conv_cpu_engine import selected_engine
from .deterministic_gemm import UNCOPIED
from .quantized import _exact_kind, _less_zero

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
# Gates with the first function: they are logistic in usual cells.
_LOGISTIC = {"rnn": 0, "gru": 2, "lstm": 3}
# The order of gates here. Those with the first function come first.
_ORDER = {"rnn": [0], "gru": [0, 1, 2], "lstm": [1, 0, 2, 3]}
_ALL = slice(None)
# Multiplications of a step's product from which threads share it, their number, and the most columns of a block.
_SHARED, _THREADS, _WIDEST = 1 << 23, 2, 64
# Bytes of weights that stay in a core's second-level cache from step to step, and of one direction's that do.
_CACHED, _CACHED_ALONE = 3 << 19, 7 << 18


class Cell(NamedTuple):
    """What `_recurrent_steps` gets besides arrays."""

    kind: str
    reverse: tuple[bool, ...]
    activations: tuple
    clip: float | None
    option: Any

    @property
    def gates(self) -> int:
        return _GATES[self.kind]

    @property
    def functions(self) -> int:
        """The number of functions of a direction."""
        return len(self.activations) // len(self.reverse)

    @property
    def is_usual(self) -> bool:
        names = tuple(name for name, *_ in self.activations)
        return names == _USUAL[self.kind] * len(self.reverse) and self.clip is None and not self.option_of_lstm

    @property
    def option_of_lstm(self) -> bool:
        return self.kind == "lstm" and bool(self.option)

    def directions(self) -> list[Cell]:
        """Return a cell for each direction."""
        count = self.functions
        return [
            self._replace(reverse=(backward,), activations=self.activations[d * count : (d + 1) * count])
            for d, backward in enumerate(self.reverse)
        ]


class Constants(NamedTuple):
    """The arrays that a file has for a layer."""

    weight: np.ndarray
    bias: np.ndarray | None
    peepholes: np.ndarray | None
    scale: np.ndarray | None
    zero: np.ndarray | None

    def direction(self, d: int) -> Constants:
        parts: Any = [None if x is None else x[d : d + 1] for x in self]
        return Constants(*parts)


def _recurrent_steps(
    sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, reverse, activations, clip, option
):
    of = Cell(cell, tuple(reverse), tuple(activations), clip, option)
    return bind_steps(of, Constants(weight, bias, peepholes, scale, zero))(sums, h, c, lengths)


def bind_steps(cell: Cell, constants: Constants) -> Callable:
    """Return a function of the inputs' sums, the first states and the lengths."""
    engine = selected_engine()
    found = None if engine is None else engine.bind_recurrent_steps(cell, constants)
    return found or bind_in_numpy(cell, constants)


def bind_in_numpy(cell: Cell, constants: Constants) -> Callable:
    """Return `bind_steps` without an engine."""
    count = cell.functions
    if len(cell.reverse) > 1 and (
        cell.activations != cell.activations[:count] * len(cell.reverse) or _are_faster_apart(cell, constants)
    ):
        return _bind_separately(cell, constants)
    return _Steps(cell, constants).run


def _are_faster_apart(cell: Cell, constants: Constants) -> bool:
    """True if the weights of one direction stay in cache from step to step, and those of all do not.

    256 units take 0.5 to 0.65 of the time then, and 192 units 1.25.
    """
    weight, scale = constants.weight, constants.scale
    size = weight.size * (weight if scale is None else scale).itemsize
    return size > _CACHED and size <= _CACHED_ALONE * len(cell.reverse)


def _bind_separately(cell: Cell, constants: Constants) -> Callable:
    """Return the steps of directions that run one after the other."""
    parts = [_Steps(one, constants.direction(d)) for d, one in enumerate(cell.directions())]

    def run(sums, h, c, lengths):
        size = sums.shape[2] // len(parts)
        found = [
            part.run(sums[:, :, d * size : (d + 1) * size], h[d : d + 1], None if c is None else c[d : d + 1], lengths)
            for d, part in enumerate(parts)
        ]
        return tuple(np.concatenate(arrays, 1) for arrays in zip(*found, strict=True))

    return run


def _logistic(x: np.ndarray, half: Any) -> np.ndarray:
    """Apply the logistic function in place."""
    np.multiply(x, half, x)
    np.tanh(x, x)
    np.multiply(x, half, x)
    return np.add(x, half, x)


def _soft_sign(x: np.ndarray) -> np.ndarray:
    return np.divide(x, np.abs(x) + 1, x)


def _soft_plus(x: np.ndarray) -> np.ndarray:
    rest = np.log1p(np.exp(-np.abs(x)))
    return np.add(np.maximum(x, 0, out=x), rest, x)


def _scaled_tanh(x: np.ndarray, a: Any, b: Any) -> np.ndarray:
    return np.multiply(np.tanh(np.multiply(x, b, x), x), a, x)


# Functions in place, of an array and two numbers of its dtype.
_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "relu": lambda x, a, b: np.maximum(x, 0, out=x),
    "tanh": lambda x, a, b: np.tanh(x, x),
    "sigmoid": lambda x, a, b: _logistic(x, x.dtype.type(0.5)),
    "affine": lambda x, a, b: np.add(np.multiply(x, a, x), b, x),
    "leakyrelu": lambda x, a, b: np.multiply(x, a, x, where=x < 0),
    "thresholdedrelu": lambda x, a, b: np.multiply(x, 0, x, where=x < a),
    "scaledtanh": _scaled_tanh,
    "hardsigmoid": lambda x, a, b: np.clip(np.add(np.multiply(x, a, x), b, x), 0, 1, x),
    "elu": lambda x, a, b: np.multiply(np.expm1(x, x, where=x < 0), a, x, where=x < 0),
    "softsign": lambda x, a, b: _soft_sign(x),
    "softplus": lambda x, a, b: _soft_plus(x),
}


class _Product:
    """The product of states with constant weights, of which each gate has a matrix: (G, D, H, H).

    Of several rows and many weights BLAS would copy the weights in each step. So they lie in blocks of columns, whose
    products are so small that it does not.
    """

    def __init__(self, weight: np.ndarray) -> None:
        self.weight = np.ascontiguousarray(weight)
        self.blocks: np.ndarray | None = None  # made when they are needed

    def begin(self, shape: tuple[int, ...], gates: slice = _ALL) -> Callable:
        """Return the function of a state of a shape and the result of some gates, (G, D, N, H)."""
        count, ways, depth, hidden = self.weight.shape
        wide = next((n for n in range(_WIDEST, _WIDEST // 2, -1) if hidden % n == 0), 0)
        is_fitting = wide and shape[1] * depth * wide <= UNCOPIED < shape[1] * depth * hidden * count
        if not is_fitting or not has_avx512_kernels(self.weight.dtype):
            weight = self.weight[gates]
            return lambda h, out: np.matmul(h, weight, out)
        if self.blocks is None:
            parts = self.weight.reshape(count, ways, depth, -1, wide)
            self.blocks = np.ascontiguousarray(parts.transpose(0, 1, 3, 2, 4))
        return functools.partial(_multiply_blocks, self.blocks[gates])


def _multiply_blocks(blocks: np.ndarray, h: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Multiply a state with blocks (G, D, B, H, H / B)."""
    states, parts = h[:, None], out.reshape(*out.shape[:3], blocks.shape[2], -1).transpose(0, 1, 3, 2, 4)
    if h.shape[1] * blocks.size < _SHARED:
        np.matmul(states, blocks, parts)
        return out
    cuts = [blocks.shape[2] * k // _THREADS for k in range(_THREADS + 1)]

    def multiply(start: int, stop: int) -> None:
        np.matmul(states, blocks[:, :, start:stop], parts[:, :, start:stop])

    parallel_for(multiply, list(itertools.pairwise(cuts)))
    return out


class _LevelProduct(_Product):
    """The product with weights in levels: states are rounded to 256 levels between their least and greatest element.

    scale: (G, D, 1, H), or 1 in place of G and H.
    """

    def __init__(self, weight: np.ndarray, scale: np.ndarray) -> None:
        super().__init__(weight)
        self.scale = scale

    def begin(self, shape: tuple[int, ...], gates: slice = _ALL) -> Callable:
        product, ways = super().begin(shape), shape[0]
        kind, exact = self.scale.dtype, self.weight.dtype
        if ways == 1 and exact == kind:
            return self._begin_direction(product, shape)
        low, high, step = (np.empty((ways, 1, 1), kind) for _ in range(3))
        of_low, of_high = low[:, 0, 0], high[:, 0, 0]
        levels, factor = np.empty(shape, kind), np.empty_like(self.scale)
        wide = None if exact == kind else (np.empty(shape, exact), np.empty((len(self.weight), *shape), exact))
        # Of zeros alone the step is the least number, and their levels are zero.
        top, least = np.array(255, kind), np.array(np.finfo(kind).smallest_subnormal)

        def multiply(h: np.ndarray, out: np.ndarray) -> np.ndarray:
            flat = h.reshape(ways, -1)
            np.minimum.reduce(flat, 1, out=of_low, initial=0)
            np.maximum.reduce(flat, 1, out=of_high, initial=0)
            np.subtract(high, low, step)
            np.divide(step, top, step)
            np.maximum(step, least, out=step)
            np.divide(low, step, low)
            np.rint(low, low)  # less the zero point, which is between 0 and 255
            np.add(low, top, high)
            np.divide(h, step, levels)
            np.rint(levels, levels)
            np.minimum(levels, high, out=levels)
            if wide is None:
                product(levels, out)
            else:
                wide[0][...] = levels
                out[...] = product(*wide)
            np.multiply(step, self.scale, factor)
            return np.multiply(out, factor, out)

        return multiply

    def _begin_direction(self, product: Callable, shape: tuple[int, ...]) -> Callable:
        """Return the function for one direction, whose range is two numbers: NumPy computes with these faster."""
        kind, levels = self.scale.dtype, np.empty(shape, self.scale.dtype)
        top, least, zero = kind.type(255), np.finfo(kind).smallest_subnormal, kind.type(0)
        scale = self.scale.reshape(-1)[0] if self.scale.size == 1 else self.scale

        def multiply(h: np.ndarray, out: np.ndarray) -> np.ndarray:
            low, high = np.minimum.reduce(h, None), np.maximum.reduce(h, None)
            low, high = zero if low > 0 else low, zero if high < 0 else high
            step = (high - low) / top
            step = least if step < least else step
            high = np.rint(low / step) + top
            np.divide(h, step, levels)
            np.rint(levels, levels)
            np.minimum(levels, high, out=levels)
            product(levels, out)
            return np.multiply(out, step * scale, out)

        return multiply


class _Steps:
    """The steps of directions with the same functions, and what constants decide.

    Arrays of gates are (G, D, N, H): neighbouring gates are contiguous, which ufuncs compute in a third of the time.
    """

    def __init__(self, cell: Cell, constants: Constants) -> None:
        self.cell, self.reverse, self.clip = cell, cell.reverse, cell.clip
        weight, bias, peepholes, scale, zero = constants
        self.hidden = hidden = weight.shape[1]
        self.dtype = kind = (weight if scale is None else scale).dtype
        self.is_usual, self.has_levels = cell.is_usual and peepholes is None, scale is not None
        self.order = _ORDER[cell.kind]
        halves = np.ones((cell.gates, 1, 1, 1), kind)
        if self.is_usual:
            halves[: _LOGISTIC[cell.kind]] = 0.5
        self.halves = halves
        if scale is None:
            self.product = _Product(self._by_gate(weight) * halves)
        else:
            if zero is not None:
                zero = zero.reshape(len(weight), 1, -1)
            exact = _exact_kind(weight, zero, -2)
            matrices = self._by_gate(_less_zero(weight, zero, exact)) * halves.astype(exact)  # half levels are exact
            scale = scale.reshape(len(weight), 1, -1)
            self.product = _LevelProduct(matrices, scale[None] if scale.shape[2] == 1 else self._by_gate(scale).copy())
        self.bias = None if bias is None else self._by_gate(bias[:, None]) * halves
        self.peepholes = None
        if peepholes is not None:
            self.peepholes = [peepholes[:, None, k * hidden : (k + 1) * hidden] for k in range(3)]
        self.functions = [
            lambda x, f=_FUNCTIONS[name], a=_number(a, kind), b=_number(b, kind): f(x, a, b)
            for name, a, b in cell.activations[: cell.functions]
        ]
        self.loop = {"rnn": self._run_rnn, "gru": self._run_gru, "lstm": self._run_lstm}[cell.kind]

    def _by_gate(self, x: np.ndarray) -> np.ndarray:
        """Return (D, M, G * H) as (G, D, M, H), in our order of gates."""
        return x.reshape(*x.shape[:2], len(self.order), -1).transpose(2, 0, 1, 3)[self.order]

    def run(self, sums, h, c, lengths):
        steps, batch, _ = sums.shape
        ways, hidden = len(self.reverse), self.hidden
        along = sums.reshape(steps, batch, ways, len(self.order), hidden)
        x = np.empty((steps, len(self.order), ways, batch, hidden), self.dtype)
        for d, backward in enumerate(self.reverse):
            part = along[::-1, :, d] if backward else along[:, :, d]
            for place, gate in enumerate(self.order):
                np.multiply(part[:, :, gate], self.halves[place], x[:, place, d])
        output = np.empty((steps, ways, batch, hidden), self.dtype)
        there = None
        if lengths is not None and (lengths < steps).any():
            here = np.arange(steps)[:, None] < lengths
            there = np.stack([here[::-1] if backward else here for backward in self.reverse], 1)[..., None]
        state = [np.array(part, self.dtype, order="C") for part in (h, c) if part is not None]
        if output.size:
            with single_threaded:
                state = self.loop(x, output, state, there)
        last = np.stack(state)  # the state may be a view of the output
        if any(self.reverse):
            if ways == 1:
                output = np.ascontiguousarray(output[::-1])
            else:
                for d, backward in enumerate(self.reverse):
                    if backward:
                        output[:, d] = output[::-1, d].copy()
        return output, last

    def _limit(self, x: np.ndarray) -> np.ndarray:
        return x if self.clip is None else np.clip(x, -self.clip, self.clip, x)

    @staticmethod
    def _settle(there: np.ndarray, t: int, state: list, new: list) -> list:
        """Return the next state: sequences that have ended keep theirs, and their outputs, `new[0]`, become 0."""
        here = there[t]
        found = [np.where(here, made, old) for old, made in zip(state, new, strict=True)]
        np.copyto(new[0], 0, where=~here)
        return found

    def _run_rnn(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (f,), product = self.functions, self.product.begin(state[0].shape)
        for t, out in enumerate(output):
            product(state[0], out[None])
            np.add(out, x[t, 0], out)
            f(self._limit(out))
            state = [out] if there is None else self._settle(there, t, state, [out])
        return state

    def _run_gru(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (h,), (f, g) = state, self.functions
        bias: Any = self.bias
        is_joined, is_usual = self.cell.option, self.is_usual
        gates: Any = np.empty((3, *h.shape), self.dtype)
        pair, of_new, z, r = gates[:2], gates[2], gates[0], gates[1]
        product = self.product.begin(h.shape, _ALL if is_joined else slice(0, 2))
        product_of_new = None if is_joined else self.product.begin(h.shape, slice(2, 3))
        target = gates if is_joined else pair
        np.add(x[:, :2], bias[:2], x[:, :2])
        of_last, half = np.ascontiguousarray(np.broadcast_to(bias[2], h.shape)), np.array(0.5, self.dtype)
        for t, (out, x_pair, x_new) in enumerate(zip(output, x[:, :2], x[:, 2], strict=True)):
            product(h, target)
            np.add(pair, x_pair, pair)
            if is_usual:
                np.tanh(pair, pair)
                np.multiply(pair, half, pair)
                np.add(pair, half, pair)
            else:
                f(self._limit(pair))
            if product_of_new is None:
                np.add(of_new, of_last, of_new)
                np.multiply(r, of_new, of_new)
            else:
                np.multiply(r, h, out)
                product_of_new(out, gates[2:])
                np.add(of_new, of_last, of_new)
            np.add(of_new, x_new, of_new)
            if is_usual:
                np.tanh(of_new, of_new)
            else:
                g(self._limit(of_new))
            np.subtract(h, of_new, out)
            np.multiply(out, z, out)
            np.add(out, of_new, out)
            (h,) = [out] if there is None else self._settle(there, t, [h], [out])
        return [h]

    def _run_lstm(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (h, c), product = state, self.product.begin(state[0].shape)
        # o, i, f, g and the cell: i and f times g and the cell are one product.
        planes: Any = np.empty((5, *h.shape), self.dtype)
        sums, logistic, o, cell = planes[:4], planes[:3], planes[0], planes[4]
        i_and_f, g_and_cell, both = planes[1:3], planes[3:], np.empty((2, *h.shape), self.dtype)
        of_i, of_f = both
        half, squashed = np.array(0.5, self.dtype), np.empty_like(c)
        cell[...] = c
        for t, (out, x_now) in enumerate(zip(output, x, strict=True)):
            seen = h
            if self.has_levels and there is not None and t:
                seen = np.where(there[t - 1], h, 0)  # which have not ended before the last step
            np.add(product(seen, sums), x_now, sums)
            if there is not None:
                c = cell.copy()
            if not self.is_usual:
                self._step(planes, out)
            else:
                np.tanh(sums, sums)
                np.multiply(logistic, half, logistic)
                np.add(logistic, half, logistic)
                np.multiply(i_and_f, g_and_cell, both)
                np.add(of_i, of_f, cell)
                np.tanh(cell, squashed)
                np.multiply(o, squashed, out)
            h = out
            if there is not None:
                h, cell[...] = self._settle(there, t, [state[0], c], [out, cell])
                state = [h]
        return [h, cell]

    def _step(self, planes: np.ndarray, out: np.ndarray) -> None:
        """Run a step with any functions: overwrite the sums and the cell, and write the next state."""
        f, g, k = self.functions
        o, i, forget, new, c = planes
        if self.peepholes is not None:
            i += c * self.peepholes[0]
            forget += c * self.peepholes[2]
        i = f(self._limit(i))
        forget = np.subtract(1, i) if self.cell.option else f(self._limit(forget))
        np.multiply(forget, c, c)
        c += i * g(self._limit(new))
        if self.peepholes is not None:
            o += c * self.peepholes[1]
        np.multiply(f(self._limit(o)), k(c.copy()), out)


def _number(value: Any, kind: np.dtype) -> Any:
    return None if value is None else kind.type(value)
