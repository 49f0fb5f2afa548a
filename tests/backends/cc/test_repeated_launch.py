"""Launches of pointwise kernels that are kept for later calls."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler
from torchlite_backends.cc.cpu_engine import Engine
from torchlite_backends.cc.device import Device
from torchlite_backends.cpu_engines.ndarray_bridge import make_engine_kernel

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
SINGLE = np.dtype("f4")


@pytest.fixture
def kernel(monkeypatch):
    """A kernel by op, of an engine that serves all sizes, and the number of complete calls."""
    device, calls = Device(), []
    engine = Engine()
    monkeypatch.setattr(engine, "device", lambda: device)
    keep = engine.run_and_keep
    monkeypatch.setattr(engine, "run_and_keep", lambda *args: calls.append(1) or keep(*args))

    def refuse(*args):
        raise AssertionError("NumPy was asked")

    return lambda op: make_engine_kernel(engine, op, refuse, {SINGLE: 1}), calls


def _numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def test_a_later_call_launches_the_same_program(kernel):
    make, calls = kernel
    hypot = make("hypot")
    for seed in range(4):
        x, y = _numbers(seed, 30, 40), _numbers(seed + 9, 30, 40)
        assert np.allclose(hypot(x, y), np.hypot(x, y))
    assert len(calls) == 1


def test_shapes_dtypes_numbers_and_equal_operands_are_told_apart(kernel):
    make, calls = kernel
    hypot, clamp = make("hypot"), make("clamp_min")
    for _ in range(2):
        x, row = _numbers(1, 30, 40), _numbers(2, 40)
        assert np.allclose(hypot(x, x), np.hypot(x, x))
        assert np.allclose(hypot(x, row), np.hypot(x, row))
        assert np.allclose(hypot(row, x), np.hypot(row, x))
        for number in (0.5, 0.0, -0.0, 1, 1.0):
            found = clamp(np.full(64, -1, "f4"), number)
            assert (found == number).all() and np.signbit(found).all() == np.signbit(number)
    assert len(calls) == 8


def test_turned_and_unaligned_views_take_the_complete_call(kernel):
    make, calls = kernel
    x = _numbers(1, 30, 40)
    for part in (x.T, x[:, 1:]):
        for _ in range(2):
            assert np.allclose(make("sgn")(part), np.sign(part))
    unaligned = np.empty(x.nbytes + 1, "u1")[1:].view("f4")
    with pytest.raises(AssertionError, match="NumPy was asked"):
        make("sgn")(unaligned)
    assert not calls


def test_row_major_views_have_launches_of_owners(kernel):
    make, calls = kernel
    hypot = make("hypot")
    x = _numbers(1, 31, 40)
    whole = _numbers(2, 30, 40)
    for first, second in ((x[1:], x[:30]), (whole, x[1:]), (x[:30], whole), (whole, whole.copy())):
        assert np.allclose(hypot(first, second), np.hypot(first, second))
    assert len(calls) == 1
    part = x[1:]
    assert np.allclose(hypot(part, part), np.hypot(part, part))
    assert len(calls) == 2


def test_written_views_keep_their_overlap(kernel):
    make, calls = kernel
    in_place = make("add_")
    for offset in (0, 1):
        x = _numbers(3, 5000)
        target, other = x[offset : offset + 4000], x[1 - offset : 4001 - offset]
        want = target + other
        in_place(target, other)
        assert np.array_equal(target, want)
    assert not calls


def test_a_written_operand_is_the_result(kernel):
    make, calls = kernel
    in_place, exponential = make("exp_"), make("exp")
    for _ in range(2):
        x = _numbers(1, 30, 40)
        want, out = np.exp(x), np.empty((30, 40), "f4")
        assert exponential(x, out) is out and np.allclose(out, want)
        in_place(x)
        assert np.allclose(x, want)
    assert len(calls) == 2
