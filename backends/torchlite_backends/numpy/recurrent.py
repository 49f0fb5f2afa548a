"""The steps of recurrent layers of files: RNN, GRU and LSTM with ONNX's options (`_recurrent_steps`).

All directions run in one loop, each step over arrays (D, N, ...): a direction that runs backwards reads and writes
reversed copies. The logistic function is 1/2 + tanh(x / 2) / 2. Where all functions are the usual ones, the sums of
logistic gates are halved before the loop, in the weights and the inputs, and one tanh serves several gates.

A state that is rounded to 8-bit levels is multiplied as whole numbers in floating point, which is exact
(`torchlite_backends.numpy.quantized`). An engine runs all steps in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .blas import single_threaded
from .conv_cpu_engine import selected_engine
from .deterministic_gemm import deterministic_matmul
from .quantized import _exact_kind, _less_zero

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
# Gates with the first function: they are logistic in usual cells.
_LOGISTIC = {"rnn": 0, "gru": 2, "lstm": 3}
_F8 = np.dtype("f8")
# Multiplications of a step's product from which several threads compute it, and rows from which its transpose is
# faster.
_SHARED, _TALL = 1 << 23, 4


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
    if len(cell.reverse) > 1 and cell.activations != cell.activations[:count] * len(cell.reverse):
        return _bind_separately(cell, constants)
    return _Steps(cell, constants).run


def _bind_separately(cell: Cell, constants: Constants) -> Callable:
    """Return the steps of directions with different functions, which run one after the other."""
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
    """The product of states with constant weights: `(states, first column, last column)`.

    halves: a factor of each column.
    """

    def __init__(self, weight: np.ndarray, halves: np.ndarray) -> None:
        self.weight = np.multiply(weight, halves, order="C")
        ways, depth, columns = weight.shape
        self.is_tall = depth * columns * _TALL >= _SHARED and ways == 1
        if self.is_tall:
            self.turned = np.ascontiguousarray(self.weight[0].T)

    def __call__(self, h: np.ndarray, out: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
        if self.is_tall and h.shape[1] >= _TALL:
            out[0] = deterministic_matmul(self.turned[first:last], np.ascontiguousarray(h[0].T)).T
            return out
        weight = self.weight if last is None and not first else self.weight[:, :, first:last]
        return np.matmul(h, weight, out)


class _LevelProduct(_Product):
    """The product with weights in levels: states are rounded to 256 levels between their least and greatest element."""

    def __init__(self, levels: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, halves: np.ndarray) -> None:
        if zero is not None:
            zero = zero.reshape(len(levels), 1, -1)
        self.kind = _exact_kind(levels, zero, -2)
        super().__init__(_less_zero(levels, zero, self.kind), np.ones(1, self.kind))
        self.scale = scale.reshape(len(levels), 1, -1) * halves

    def __call__(self, h: np.ndarray, out: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
        low, high = h.min((1, 2), keepdims=True), h.max((1, 2), keepdims=True)
        np.minimum(low, 0, out=low)
        np.maximum(high, 0, out=high)
        step = np.subtract(high, low)
        np.divide(step, 255, step)
        step[high == low] = 1
        np.divide(low, step, low)
        np.rint(low, low)  # less the zero point, which is between 0 and 255
        np.add(low, 255, high)
        levels = np.divide(h, step)
        np.rint(levels, levels)
        np.minimum(levels, high, out=levels)
        if self.kind == _F8:
            out[...] = super().__call__(levels.astype(_F8), np.empty(out.shape, _F8))
        else:
            super().__call__(levels, out)
        return np.multiply(out, step * self.scale, out)


class _Steps:
    """The steps of directions with the same functions, and what constants decide."""

    def __init__(self, cell: Cell, constants: Constants) -> None:
        self.cell, self.reverse, self.clip = cell, cell.reverse, cell.clip
        weight, self.bias, peepholes, scale, zero = constants
        self.hidden = hidden = weight.shape[1]
        self.dtype = kind = (weight if scale is None else scale).dtype
        self.is_usual, self.has_levels = cell.is_usual and peepholes is None, scale is not None
        self.halves = np.ones(cell.gates * hidden, kind)
        if self.is_usual:
            self.halves[: _LOGISTIC[cell.kind] * hidden] = 0.5
        if scale is None:
            self.product = _Product(weight, self.halves)
        else:
            self.product = _LevelProduct(weight, scale, zero, self.halves)
        if self.bias is not None:
            self.bias = (self.bias * self.halves)[:, None]
        self.peepholes = None
        if peepholes is not None:
            self.peepholes = [peepholes[:, None, k * hidden : (k + 1) * hidden] for k in range(3)]
        self.functions = [
            lambda x, f=_FUNCTIONS[name], a=_number(a, kind), b=_number(b, kind): f(x, a, b)
            for name, a, b in cell.activations[: cell.functions]
        ]
        self.loop = {"rnn": self._run_rnn, "gru": self._run_gru, "lstm": self._run_lstm}[cell.kind]

    def run(self, sums, h, c, lengths):
        steps, batch, _ = sums.shape
        ways, hidden = len(self.reverse), self.hidden
        along = sums.reshape(steps, batch, ways, len(self.halves))
        x = np.empty((steps, ways, batch, along.shape[3]), self.dtype)
        for d, backward in enumerate(self.reverse):
            part = along[::-1, :, d] if backward else along[:, :, d]
            np.multiply(part, self.halves, x[:, d])
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
    def _settle(there: np.ndarray | None, t: int, state: list, new: list) -> list:
        """Return the next state: sequences that have ended keep theirs, and their outputs, `new[0]`, become 0."""
        if there is None:
            return new
        here = there[t]
        found = [np.where(here, made, old) for old, made in zip(state, new, strict=True)]
        np.copyto(new[0], 0, where=~here)
        return found

    def _run_rnn(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (f,) = self.functions
        for t, out in enumerate(output):
            self.product(state[0], out)
            np.add(out, x[t], out)
            f(self._limit(out))
            state = self._settle(there, t, state, [out])
        return state

    def _run_gru(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (h,), hidden, (f, g) = state, self.hidden, self.functions
        both = 2 * hidden
        joined, product = self.cell.option, self.product
        gates: Any = np.empty((*h.shape[:2], 3 * hidden), self.dtype)
        of_gates, of_new = gates[..., :both], gates[..., both:]
        z, r = gates[..., :hidden], gates[..., hidden:both]
        pair, single = np.empty((*h.shape[:2], both), self.dtype), np.empty_like(h)
        bias: Any = self.bias
        of_both, of_last = bias[..., :both], bias[..., both:]
        half = self.dtype.type(0.5)
        for t, out in enumerate(output):
            now = x[t]
            if joined:
                np.add(product(h, gates), bias, gates)
            else:
                np.add(product(h, pair, 0, both), of_both, of_gates)
            np.add(of_gates, now[..., :both], of_gates)
            if self.is_usual:
                np.tanh(of_gates, of_gates)
                np.multiply(of_gates, half, of_gates)
                np.add(of_gates, half, of_gates)
            else:
                of_gates[...] = f(self._limit(np.ascontiguousarray(of_gates)))
            if joined:
                np.multiply(r, of_new, single)
            else:
                np.multiply(r, h, out)
                np.add(product(out, single, both), of_last, single)
            np.add(single, now[..., both:], single)
            g(self._limit(single))
            np.subtract(h, single, out)
            np.multiply(out, z, out)
            np.add(out, single, out)
            (h,) = self._settle(there, t, [h], [out])
        return [h]

    def _run_lstm(self, x: np.ndarray, output: np.ndarray, state: list, there: Any) -> list:
        (h, c), hidden, product = state, self.hidden, self.product
        sums = np.empty((*h.shape[:2], 4 * hidden), self.dtype)
        half, logistic = self.dtype.type(0.5), sums[..., : 3 * hidden]
        i, o, forget, g = (sums[..., k * hidden : (k + 1) * hidden] for k in range(4))
        squashed, new = np.empty_like(c), np.empty_like(c)
        for t, out in enumerate(output):
            seen = h
            if self.has_levels and there is not None and t:
                seen = np.where(there[t - 1], h, 0)  # which have not ended before the last step
            np.add(product(seen, sums), x[t], sums)
            if not self.is_usual:
                self._step(sums, c, new, out)
            else:
                np.tanh(sums, sums)
                np.multiply(logistic, half, logistic)
                np.add(logistic, half, logistic)
                np.multiply(i, g, i)
                np.multiply(forget, c, new)
                np.add(new, i, new)
                np.tanh(new, squashed)
                np.multiply(o, squashed, out)
            if there is None:
                h, c, new = out, new, c
            else:
                h, c = self._settle(there, t, [h, c], [out, new])
        return [h, c]

    def _step(self, sums: np.ndarray, c: np.ndarray, new: np.ndarray, out: np.ndarray) -> None:
        """Run a step with any functions: write the next cell and state."""
        f, g, k = self.functions
        i, o, forget, of_new = (np.ascontiguousarray(part) for part in np.split(sums, 4, -1))
        if self.peepholes is not None:
            i += c * self.peepholes[0]
            forget += c * self.peepholes[2]
        i = f(self._limit(i))
        forget = np.subtract(1, i) if self.cell.option else f(self._limit(forget))
        np.multiply(forget, c, new)
        new += i * g(self._limit(of_new))
        if self.peepholes is not None:
            o += new * self.peepholes[1]
        np.multiply(f(self._limit(o)), k(new.copy()), out)


def _number(value: Any, kind: np.dtype) -> Any:
    return None if value is None else kind.type(value)
