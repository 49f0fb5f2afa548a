"""The time steps of recurrent layers of files: RNN, GRU and LSTM with ONNX's options, in one op.

The products of the inputs are computed before, for all steps at once. `_recurrent_steps` records no gradients; its
composite is also what the importer calls where gradients are recorded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .._dispatch import NONDIFF, op

GATES = {"rnn": 1, "gru": 3, "lstm": 4}

# By name: a function of `F`, a tensor and two parameters, and the parameters' defaults. None: there is no parameter.
ACTIVATIONS = {
    "relu": (lambda F, x, a, b: F.relu(x), None, None),
    "tanh": (lambda F, x, a, b: F.tanh(x), None, None),
    "sigmoid": (lambda F, x, a, b: F.sigmoid(x), None, None),
    "affine": (lambda F, x, a, b: F.add(F.mul(x, a), b), 1.0, 0.0),
    "leakyrelu": (lambda F, x, a, b: F.where(F.ge(x, 0.0), x, F.mul(x, a)), 0.01, None),
    "thresholdedrelu": (lambda F, x, a, b: F.where(F.ge(x, a), x, F._zeros_like(x)), 1.0, None),
    "scaledtanh": (lambda F, x, a, b: F.mul(F.tanh(F.mul(x, b)), a), 1.0, 1.0),
    "hardsigmoid": (lambda F, x, a, b: F._clamp_scalars(F.add(F.mul(x, a), b), 0.0, 1.0), 0.2, 0.5),
    "elu": (lambda F, x, a, b: F.where(F.ge(x, 0.0), x, F.mul(F.expm1(F.clamp_max(x, 0.0)), a)), 1.0, None),
    "softsign": (lambda F, x, a, b: F.div(x, F.add(F.abs(x), 1.0)), None, None),
    "softplus": (lambda F, x, a, b: F.add(F.relu(x), F.log1p(F.exp(F.neg(F.abs(x))))), None, None),
}


class Direction(NamedTuple):
    """Data that all steps of a direction use. `product` multiplies a state with the weights' columns from one on."""

    F: Any
    hidden: int
    product: Callable
    bias: Any
    peepholes: Any
    functions: list
    clip: float | None
    option: Any

    def limit(self, x):
        return x if self.clip is None else self.F._clamp_scalars(x, -self.clip, self.clip)

    def lines(self, x, first, count=1):
        """Some gates' columns of `x`."""
        return self.F.narrow(x, x.ndim - 1, first * self.hidden, count * self.hidden)


def _rnn_step(of, x, h):
    return (of.functions[0](of.limit(of.F.add(x, of.product(h, 0, 1)))),)


def _gru_step(of, x, h):
    F, (f, g) = of.F, of.functions
    if of.option:
        sums = F.add(of.product(h, 0, 3), of.bias)
        gates = of.lines(sums, 0, 2)
    else:
        gates = F.add(of.product(h, 0, 2), of.lines(of.bias, 0, 2))
    gates = f(of.limit(F.add(of.lines(x, 0, 2), gates)))
    z, r = of.lines(gates, 0), of.lines(gates, 1)
    if of.option:
        new = F.mul(r, of.lines(sums, 2))
    else:
        new = F.add(of.product(F.mul(r, h), 2, 1), of.lines(of.bias, 2))
    n = g(of.limit(F.add(of.lines(x, 2), new)))
    return (F.add(n, F.mul(z, F.sub(h, n))),)


def _lstm_step(of, x, h, c):
    F, (f, g, k), peepholes = of.F, of.functions, of.peepholes
    sums = F.add(x, of.product(h, 0, 4))
    i, o, forget, new = (of.lines(sums, place) for place in range(4))
    if peepholes is not None:
        i, forget = F.add(i, F.mul(c, of.lines(peepholes, 0))), F.add(forget, F.mul(c, of.lines(peepholes, 2)))
    i = f(of.limit(i))
    forget = F.add(F.neg(i), 1.0) if of.option else f(of.limit(forget))
    c = F.add(F.mul(forget, c), F.mul(i, g(of.limit(new))))
    if peepholes is not None:
        o = F.add(o, F.mul(c, of.lines(peepholes, 1)))
    return F.mul(f(of.limit(o)), k(c)), c


_STEPS: dict[str, Callable] = {"rnn": _rnn_step, "gru": _gru_step, "lstm": _lstm_step}


def _make_product(F, weight, scale, zero, hidden):
    """Return the function that multiplies a state with `count` gates' columns of the weights from `first` on."""

    def multiply(h, first, count):
        return F.matmul(h, F.narrow(weight, 1, first * hidden, count * hidden))

    def multiply_levels(h, first, count):
        levels, step, level = F._dynamic_quantize(h)
        return F._quantized_matmul(levels, weight, level, zero, None, F.mul(step, scale), None)

    return multiply if scale is None else multiply_levels


def steps_of_layer(
    F, sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, reverse, activations, clip, option
):  # fmt: skip
    """The composite of `_recurrent_steps`, of arrays or of tensors."""
    steps, batch, _ = sums.shape
    hidden = h.shape[2]
    size, count = GATES[cell] * hidden, len(activations) // len(reverse)

    def of_direction(x, d):
        return None if x is None else F.reshape(F.narrow(x, 0, d, 1), x.shape[1:])

    outputs, lasts = [], []
    for d, backward in enumerate(reverse):
        matrix, extra, peep, factor, origin, *state = (
            of_direction(x, d) for x in (weight, bias, peepholes, scale, zero, h, *([] if c is None else [c]))
        )
        product = _make_product(F, matrix, factor, origin, hidden)
        functions = [
            lambda x, of=of: ACTIVATIONS[of[0]][0](F, x, *of[1:]) for of in activations[d * count : (d + 1) * count]
        ]
        direction = Direction(F, hidden, product, extra, peep, functions, clip, option)
        made = [None] * steps
        for t in range(steps - 1, -1, -1) if backward else range(steps):
            x = F.narrow(F.reshape(F.narrow(sums, 0, t, 1), sums.shape[1:]), 1, d * size, size)
            seen = state[0]
            if factor is not None and lengths is not None:
                seen = F.where(F.reshape(F.ge(lengths, t), (batch, 1)), seen, F._zeros_like(seen))
            new = _STEPS[cell](direction, x, seen, *state[1:])
            made[t] = new[0]
            if lengths is not None:
                here = F.reshape(F.gt(lengths, t), (batch, 1))
                new = [F.where(here, a, b) for a, b in zip(new, state, strict=True)]
                made[t] = F.where(here, made[t], F._zeros_like(made[t]))
            state = list(new)
        outputs.append(F.stack(made, 0) if steps else F.reshape(F.narrow(sums, 2, 0, hidden), (0, batch, hidden)))
        lasts.append(F.stack(state, 0))
    return F.stack(outputs, 1), F.stack(lasts, 1)


def _shape_of_steps(
    sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, reverse, activations, clip, option
):  # fmt: skip
    ways, batch, hidden = h.shape
    if cell not in GATES or len(reverse) != ways or (c is None) is (cell == "lstm"):
        raise RuntimeError(f"a cell {cell!r} of {len(reverse)} directions does not fit a state of {list(h.shape)}")
    size = GATES[cell] * hidden
    if cell == "gru" and bias is None or cell != "lstm" and (scale is not None or peepholes is not None):
        raise RuntimeError("a GRU has biases, and only an LSTM has levels or peepholes")
    if scale is not None and lengths is not None and any(reverse):
        raise RuntimeError("sequences of several lengths with levels run forwards")
    expected = {
        "sums": (sums, (len(sums.shape) and sums.shape[0], batch, ways * size)),
        "weights": (weight, (ways, hidden, size)),
        "cells": (c, (ways, batch, hidden)),
        "biases": (bias, (ways, size)),
        "peepholes": (peepholes, (ways, 3 * hidden)),
        "lengths": (lengths, (batch,)),
    }
    for what, (tensor, shape) in expected.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(f"{what} of the shape {list(tensor.shape)} where {list(shape)} is expected")
    for what, tensor in (("scales", scale), ("zero points", zero)):
        if tensor is not None and tuple(tensor.shape) not in ((ways,), (ways, size)):
            raise RuntimeError(f"{what} of the shape {list(tensor.shape)} for {ways} directions of {size} columns")
    states = 1 if c is None else 2
    return [((sums.shape[0], ways, batch, hidden), sums.dtype), ((states, ways, batch, hidden), sums.dtype)]


op(
    "_recurrent_steps(Tensor sums, Tensor weight, Tensor h, Tensor? c, Tensor? bias, Tensor? peepholes, "
    "Tensor? lengths, Tensor? scale, Tensor? zero, cell, reverse, activations, clip, option)",
    where="",
    tags=NONDIFF,
    outputs=("output", "state"),
    composite=steps_of_layer,
    shape_fn=_shape_of_steps,
    doc="""The steps of a recurrent layer in each of D directions: the outputs (T, D, N, H), and the last states (S, D,
    N, H), where S is 2 for "lstm" (h and c) and 1 for "gru" and "rnn".

    `sums` (T, N, D * G * H) is what the inputs add to the G gates, with their biases; the order of gates is ONNX's: i,
    o, f, c and z, r, h. `weight` (D, H, G * H) multiplies the state. With `scale` and `zero`, one for each direction
    or column, it has 8-bit levels, and each state is rounded to levels by its range (`_dynamic_quantize`). `bias` is
    what a GRU adds to the state's product. `peepholes` are those of i, o and f. Sequence n ends behind `lengths[n]`
    steps: later outputs are 0, and its state counts as 0 in the range from the second step after on. `reverse` has a
    bool for each direction, `activations` the name and two parameters of each function (`ACTIVATIONS`), those of a
    direction one after the other. Arguments of functions lie in [-clip, clip]. `option` is ONNX's
    `linear_before_reset` or `input_forget`.
    """,
)
