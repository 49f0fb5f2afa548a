"""Compiled special functions of float32, beside the shared kernels in float64."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.array import special
from torchlite_backends.cc import cxx_compiler, native_special
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
INPUTS = {
    "erfc": np.linspace(-12, 14, 40_003),
    "special_ndtr": np.linspace(-14, 12, 40_003),
    "erfinv": np.concatenate([np.linspace(-1, 1, 40_003), 1 - np.logspace(-7, -1, 999), np.logspace(-30, -1, 999)]),
}


@pytest.mark.parametrize("op", INPUTS)
def test_each_number_is_within_a_unit_in_the_last_place(op):
    x = INPUTS[op].astype("f4")
    found = native_special.kernels[op](Device(), x)
    want = getattr(special, op)(x.astype("f8"))
    assert found.dtype == "f4"
    normal = np.isfinite(want) & (np.abs(want) > 1e-37)
    assert (np.abs(found - want)[normal] <= 0.6 * np.spacing(np.abs(want[normal]).astype("f4"))).all()


def test_special_numbers():
    x = np.tile(np.array([0.0, -0.0, 1, -1, 2, np.inf, -np.inf, np.nan], "f4"), 128)
    found = {op: native_special.kernels[op](Device(), x)[:8].tolist() for op in ("erfc", "erfinv")}
    nan = pytest.approx(np.nan, nan_ok=True)
    one = [*(pytest.approx(y, rel=3e-7) for y in (0.15729920, 1.84270079, 0.004677735))]
    assert found == {
        "erfc": [1.0, 1.0, *one, 0.0, 2.0, nan],
        "erfinv": [0.0, -0.0, np.inf, -np.inf, nan, nan, nan, nan],
    }


def _angles():
    rng, turns = np.random.default_rng(3), np.arange(1, 2000) * (np.pi / 2)
    near = [np.linspace(-7, 7, 9001), rng.uniform(-1e5, 1e5, 9001), turns, np.nextafter(turns, 0), [0.0, -0.0, 5e-324]]
    return {"near": np.concatenate(near), "far": np.concatenate([rng.standard_normal(2000) * 1e300, *near])}


@pytest.mark.parametrize("op", ["sin", "cos"])
@pytest.mark.parametrize("kind", ["near", "far"])
def test_sine_and_cosine_are_within_a_unit_in_the_last_place(kind, op):
    x = _angles()[kind]
    found, want = native_special.kernels[op](Device(), x), getattr(np, op)(x)
    assert (np.abs(found - want) <= np.spacing(np.abs(want))).all()
    assert (np.signbit(found) == np.signbit(want)).all()


@pytest.mark.parametrize("place", [0, 1500, -1])
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_angles_without_sine(op, place):
    for odd in (np.nan, np.inf, -np.inf):
        x = np.linspace(-3, 3, 5000)
        x[place] = odd
        found = native_special.kernels[op](Device(), x)
        want = getattr(np, op)(np.linspace(-3, 3, 5000))
        want[place] = np.nan
        np.testing.assert_allclose(found, want, rtol=1e-14, atol=1e-16)


def test_other_arrays_are_declined():
    for x in (np.ones(9, "f4"), np.ones(9_999), np.ones((99, 99), "f4").T[:50]):
        assert native_special.kernels["erfc"](Device(), x) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_next_numbers(dtype):
    rng = np.random.default_rng(2)
    limits = np.finfo(dtype)
    some = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.tiny, limits.smallest_subnormal]
    x, y = (np.concatenate([rng.choice(some, 4000), rng.standard_normal(99)]).astype(dtype) for _ in range(2))
    found = native_special.nextafter(Device(), x, y)
    want = np.nextafter(x, y)
    assert np.array_equal(found, want, equal_nan=True)
    assert (np.signbit(found) == np.signbit(want))[~np.isnan(want)].all()
    assert native_special.nextafter(Device(), x, y[:1]) is None
