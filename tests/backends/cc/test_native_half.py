"""Compiled arithmetic of half precision: NumPy's results, bit for bit."""

import ml_dtypes
import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_binary
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]
UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.fixture(scope="module")
def engine():
    return Device(0, True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("half", HALVES, ids=str)
@pytest.mark.parametrize("op", UFUNCS)
def test_arithmetic_rounds_once(engine, op, half):
    x = np.arange(1 << 16, dtype=np.uint16).view(half)
    y = np.random.default_rng(1).permutation(x)
    kernel = native_binary.kernels[op]
    number = np.array(1.25, half)
    for a, b in ((x, y), (x[3:-2], y[3:-2]), (x[:5], y[:5]), (x.reshape(256, 256), number), (x[:7], number)):
        found, expected = kernel(engine, a, b), UFUNCS[op](a, b)
        if found is None:
            pytest.skip("the processor has no instructions for half precision")
        nan = np.isnan(expected.astype("f4"))
        assert found.shape == a.shape and (np.isnan(found.astype("f4")) == nan).all()
        assert (found.view(np.uint16)[~nan] == expected.view(np.uint16)[~nan]).all()


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_others_are_left_to_numpy(engine, half):
    x = np.ones(64, half)
    kernel = native_binary.kernels["add"]
    assert all(kernel(engine, *given) is None for given in ((x, x[:1]), (x[::2], x[::2]), (x, 1.5), (x[:0], x[:0])))
    assert kernel(engine, x, x.astype("f4")) is None
    assert native_binary.kernels["div"](engine, np.ones(64, "f4"), np.ones(64, "f4")) is None
