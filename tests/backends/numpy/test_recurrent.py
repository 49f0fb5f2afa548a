"""Steps of recurrent layers in NumPy against the composite."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import F
from torchlite._ops.recurrent_steps import ACTIVATIONS, steps_of_layer
from torchlite_backends.numpy import recurrent

USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


def make_layer(
    kind, reverse, *, steps=5, batch=3, hidden=6, names=None, clip=None, option=False, lengths=False, peepholes=False,
    levels="", by_column=False, dtype="f4",
):  # fmt: skip
    """A cell, its constants, and the arrays of a call."""
    rng = np.random.default_rng(0)
    ways, size = len(reverse), recurrent._GATES[kind] * hidden

    def numbers(*shape):
        return (rng.standard_normal(shape) * 0.7).astype(dtype)

    def activation(name):
        _, a, b = ACTIVATIONS[name]
        return name, a, b

    weight, scale, zero = numbers(ways, hidden, size) / 2, None, None
    if levels:
        limits, shape = np.iinfo(levels), (ways, size) if by_column else (ways,)
        weight = rng.integers(limits.min, limits.max + 1, (ways, hidden, size)).astype(levels)
        scale = (rng.random(shape) * 0.01 + 0.001).astype("f4")
        zero = rng.integers(limits.min, limits.max + 1, shape).astype(levels)
    cell = recurrent.Cell(
        kind, tuple(reverse), tuple(map(activation, names or USUAL[kind] * ways)), clip, option
    )  # fmt: skip
    constants = recurrent.Constants(
        weight, numbers(ways, size) if kind == "gru" else None, numbers(ways, 3 * hidden) if peepholes else None,
        scale, zero,
    )  # fmt: skip
    state = [numbers(ways, batch, hidden) for _ in range(1 + (kind == "lstm"))]
    ends = rng.integers(0, steps + 1, batch).astype("i4") if lengths else None
    return cell, constants, (numbers(steps, batch, ways * size), state[0], (*state, None)[1], ends)


def expect(cell, constants, given):
    """The composite's results."""
    sums, h, c, lengths = given
    weight, bias, peepholes, scale, zero = constants
    tensors = [
        None if x is None else torch.from_numpy(x) for x in (sums, weight, h, c, bias, peepholes, lengths, scale, zero)
    ]
    found = steps_of_layer(F, *tensors, cell.kind, cell.reverse, cell.activations, cell.clip, cell.option)
    return [value.numpy() for value in found]


def check(run, cell, constants, given, tolerance=1e-5):
    before = [None if x is None else x.copy() for x in given]
    for got, want in zip(run(*given), expect(cell, constants, given), strict=True):
        assert got.dtype == want.dtype and got.flags.c_contiguous
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    for x, old in zip(given, before, strict=True):  # a call writes no argument
        assert x is None or np.array_equal(x, old, equal_nan=x.dtype.kind == "f")


LAYERS = {
    "usual": {}, "one": {"batch": 1}, "lengths": {"lengths": True}, "clip": {"clip": 0.5}, "option": {"option": True},
    "none": {"steps": 0}, "no_batch": {"batch": 0}, "double": {"dtype": "f8", "batch": 20, "hidden": 17},
    "all": {"lengths": True, "clip": 0.7, "option": True, "batch": 35},
}  # fmt: skip
WAYS = [(False,), (True,), (False, True)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("reverse", WAYS, ids=["forward", "reverse", "both"])
@pytest.mark.parametrize("kind", USUAL)
def test_layers(kind, reverse, layer):
    made = make_layer(kind, reverse, **LAYERS[layer])
    check(recurrent.bind_in_numpy(*made[:2]), *made)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("kind", USUAL)
def test_functions(kind, name):
    count = len(USUAL[kind])
    for names in ((name,) * 2 * count, (name,) * count + USUAL[kind]):  # equal ones, and others in each direction
        made = make_layer(kind, (False, True), names=names, steps=2)
        check(recurrent.bind_in_numpy(*made[:2]), *made)


@pytest.mark.parametrize(("levels", "by_column"), list(itertools.product(("i1", "u1"), (False, True))))
@pytest.mark.parametrize("peepholes", [False, True])
def test_levels(levels, by_column, peepholes):
    for lengths, ways in ((False, (False, True)), (True, (False,))):
        made = make_layer(
            "lstm", ways, levels=levels, by_column=by_column, peepholes=peepholes, lengths=lengths, hidden=19
        )
        check(recurrent.bind_in_numpy(*made[:2]), *made)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("by_column", [False, True])
def test_levels_of_one_direction(by_column, value):
    cell, constants, given = make_layer("lstm", (True,), levels="i1", by_column=by_column, hidden=19)
    given[1][0, 1] = value
    with np.errstate(all="ignore"):
        check(recurrent.bind_in_numpy(cell, constants), cell, constants, given)


@pytest.mark.parametrize(("hidden", "levels", "count"), [(192, "", 1), (256, "", 2), (256, "u1", 2), (400, "", 1)])
def test_directions_whose_weights_stay_in_cache_run_apart(monkeypatch, hidden, levels, count):
    made, make = [], recurrent._Steps
    monkeypatch.setattr(recurrent, "_Steps", lambda *given: made.append(given) or make(*given))
    cell, constants, given = make_layer("lstm", (False, True), levels=levels, hidden=hidden, steps=2)
    found = recurrent.bind_in_numpy(cell, constants)(*given)
    assert len(made) == count
    for got, want in zip(found, expect(cell, constants, given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_sums_that_float32_does_not_hold():
    """Sums of 300 products of levels may be beyond 2**24: they are exact all the same."""
    cell, constants, given = make_layer("lstm", (False,), levels="u1", hidden=300, steps=2)
    constants = constants._replace(weight=np.full_like(constants.weight, 255), zero=np.zeros(1, "u1"),
                                   scale=np.full(1, 1e-6, "f4"))  # fmt: skip
    given[1][...] = np.abs(given[1]) + 1
    product = recurrent._Steps(cell, constants).product
    assert product.weight.dtype == np.float64
    check(recurrent.bind_in_numpy(cell, constants), cell, constants, given)


@pytest.mark.parametrize("kind", USUAL)
@pytest.mark.parametrize(("hidden", "batch"), [(750, 5), (64, 100), (256, 30), (199, 60)])
def test_products_in_blocks(monkeypatch, kind, hidden, batch):
    """Products of several rows with many weights run in blocks of columns, where such a block fits."""
    monkeypatch.setattr(recurrent, "has_avx512_kernels", lambda dtype: True)
    made = make_layer(kind, (False, True), batch=batch, hidden=hidden, steps=2)
    steps = recurrent._Steps(*made[:2])
    check(steps.run, *made, 1e-4)
    work = batch * hidden * hidden * recurrent._GATES[kind]
    assert (steps.product.blocks is not None) == (hidden != 199 and work > 1_000_000)
