"""Native steps of recurrent layers against the composite."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.backends.numpy.test_recurrent import LAYERS, USUAL, WAYS, check, make_layer
from torchlite._ops.recurrent_steps import ACTIVATIONS
from torchlite_backends.cc import cxx_compiler, native_recurrent
from torchlite_backends.cc.device import Device
from torchlite_backends.numpy import recurrent

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("reverse", WAYS, ids=["forward", "reverse", "both"])
@pytest.mark.parametrize("kind", USUAL)
def test_layers(engine, kind, reverse, layer):
    made = make_layer(kind, reverse, **LAYERS[layer])
    check(native_recurrent.bind_steps(engine, *made[:2]), *made)


@pytest.mark.parametrize(("batch", "hidden"), [(1, 1), (1, 16), (1, 33), (1, 70), (2, 16), (16, 5), (70, 40)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", USUAL)
def test_sizes(engine, kind, dtype, batch, hidden):
    """Whole vectors and rests, panels, and parts of a batch."""
    for option in (False, True):
        made = make_layer(kind, (False, True), batch=batch, hidden=hidden, dtype=dtype, option=option, lengths=True)
        check(native_recurrent.bind_steps(engine, *made[:2]), *made, 1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("kind", USUAL)
def test_functions(engine, kind, name):
    names = (name,) * len(USUAL[kind]) + USUAL[kind]
    for dtype in ("f4", "f8"):
        made = make_layer(kind, (False, True), names=names, steps=2, dtype=dtype)
        check(native_recurrent.bind_steps(engine, *made[:2]), *made)


@pytest.mark.parametrize(("levels", "by_column"), list(itertools.product(("i1", "u1"), (False, True))))
@pytest.mark.parametrize("peepholes", [False, True])
def test_levels(engine, levels, by_column, peepholes):
    for batch, lengths, ways in ((1, False, (False, True)), (3, False, (True,)), (8, True, (False,))):
        made = make_layer(
            "lstm", ways, levels=levels, by_column=by_column, peepholes=peepholes, lengths=lengths, hidden=19,
            batch=batch,
        )  # fmt: skip
        check(native_recurrent.bind_steps(engine, *made[:2]), *made)


def test_shared_products(engine, monkeypatch):
    """Threads share the products of a step, with the same numbers."""
    made = make_layer("lstm", (False, True), levels="i1", hidden=200, batch=8)
    want = native_recurrent.bind_steps(engine, *made[:2])(*made[2])
    monkeypatch.setattr(native_recurrent, "_SHARED_STEP", 0)
    monkeypatch.setattr(native_recurrent, "get_threads", lambda: 2)
    monkeypatch.setattr(native_recurrent, "can_share_work", lambda: True)
    for got, old in zip(native_recurrent.bind_steps(engine, *made[:2])(*made[2]), want, strict=True):
        np.testing.assert_array_equal(got, old)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_accuracy(engine, name):
    """The functions of gates, of all sizes: a few units of the last place of 1, and NaN stays."""
    x = np.concatenate([np.linspace(-15, 15, 4000), np.logspace(-30, 1, 90), [np.inf, -np.inf, 0, 1e30, -1e30, np.nan]])
    x = x.astype("f4").reshape(-1, 1, 16)
    cell = recurrent.Cell("rnn", (False,), ((name, None, None),), None, False)
    zeros = np.zeros((1, 16, 16), "f4")
    run = native_recurrent.bind_steps(engine, cell, recurrent.Constants(zeros, None, None, None, None))
    got = run(x[:-1], zeros[:, :1], None, None)[0].reshape(-1)
    wide = x.astype("f8")
    want = np.tanh(wide) if name == "tanh" else 1 / (1 + np.exp(-wide))
    np.testing.assert_allclose(got, want.reshape(-1)[:-16], rtol=0, atol=1.2e-7)
    last = run(x[-1:], zeros[:, :1], None, None)[0].reshape(-1)
    np.testing.assert_allclose(last, want.reshape(-1)[-16:], rtol=0, atol=1.2e-7)


def test_states_that_are_not_numbers(engine):
    cell, constants, given = make_layer("lstm", (False,), levels="i1")
    given[1][0, 0, 0] = np.nan
    found = native_recurrent.bind_steps(engine, cell, constants)(*given)
    for got, want in zip(found, recurrent.bind_in_numpy(cell, constants)(*given), strict=True):
        np.testing.assert_array_equal(got, want)


def test_left_to_numpy(engine):
    cell, constants, _ = make_layer("lstm", (False,))
    half = constants._replace(weight=constants.weight.astype("f2"))
    assert native_recurrent.bind_steps(engine, cell, half) is None
    wide = constants._replace(weight=np.zeros(constants.weight.shape, "i2"), scale=np.ones(1, "f4"))
    assert native_recurrent.bind_steps(engine, cell, wide) is None
    assert native_recurrent.bind_steps(engine, cell, constants._replace(weight=np.zeros((1, 0, 0), "f4"))) is None
