"""Convolutions with constant weights equal the same ones called with all arguments, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite._settings import thread_count
from torchlite_backends.cc import convolution, cxx_compiler
from torchlite_backends.cc.bound_convolution import bind_forward
from torchlite_backends.numpy.conv_geometry import get_conv_geometry
from torchlite_backends.numpy.fused_inference import ConvEpilogue

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")

# Batch, channels, filters, size, kernel, stride, padding, dilation, groups.
CASES = {
    "3x3": (2, 16, 24, (20, 21), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "winograd": (2, 32, 40, (30, 34), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "strided": (1, 16, 24, (33, 31), (5, 5), (2, 2), (2, 2), (1, 1), 1),
    "1x1": (1, 64, 48, (14, 14), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1 of several images": (5, 64, 48, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "depthwise": (2, 48, 48, (24, 24), (3, 3), (1, 1), (1, 1), (1, 1), 48),
    "groups": (1, 32, 32, (20, 20), (3, 3), (1, 1), (1, 1), (2, 2), 4),
    "signal": (2, 24, 32, (200,), (5,), (2,), (2,), (1,), 1),
}
FINISHES = {"plain": None, "relu": (0.0, np.inf), "relu6": (0.0, 6.0)}


@pytest.fixture(scope="module")
def convolutions():
    return convolution.load_convolutions(True)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("case", CASES)
def test_equal(convolutions, case, finish, threads, monkeypatch):
    monkeypatch.setattr(convolution, "get_threads", lambda: threads)
    monkeypatch.setattr(thread_count, "get_threads", lambda: threads)
    plan = get_conv_geometry(*CASES[case])
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((plan.filters, plan.channels // plan.groups, *plan.kernel)).astype("f4")
    bias = rng.standard_normal(plan.filters).astype("f4")
    limits = FINISHES[finish]

    def epilogue():
        return None if limits is None else ConvEpilogue(None, None, None, None, 0.0, *limits)

    bound = bind_forward(convolutions, plan, weight, bias, epilogue())
    assert bound is not None
    for _ in range(3):
        x = rng.standard_normal((plan.batch, plan.channels, *plan.size)).astype("f4")
        want = convolutions.forward(plan, x, weight, bias, epilogue())
        np.testing.assert_array_equal(bound(x), want)


def test_values_that_are_not_finite(convolutions):
    """Winograd's filtering refuses them."""
    plan = get_conv_geometry(*CASES["winograd"])
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((plan.filters, plan.channels, *plan.kernel)).astype("f4")
    x = rng.standard_normal((plan.batch, plan.channels, *plan.size)).astype("f4")
    x[0, 3, 4, 5] = np.inf
    bound = bind_forward(convolutions, plan, weight, None, None)
    np.testing.assert_array_equal(bound(x), convolutions.forward(plan, x, weight, None))


def test_weights_are_kept(convolutions):
    """Each function has its own transformed weights."""
    plan = get_conv_geometry(*CASES["winograd"])
    rng = np.random.default_rng(2)
    x = rng.standard_normal((plan.batch, plan.channels, *plan.size)).astype("f4")
    weights = [rng.standard_normal((plan.filters, plan.channels, *plan.kernel)).astype("f4") for _ in range(2)]
    want = [convolutions.forward(plan, x, weight, None) for weight in weights]
    bound = [bind_forward(convolutions, plan, weight, None, None) for weight in weights]
    for _ in range(2):
        for function, result in zip(bound, want, strict=True):
            np.testing.assert_array_equal(function(x), result)
