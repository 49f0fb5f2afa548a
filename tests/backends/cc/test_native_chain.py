"""Chains of elementwise ops in the compiled interpreter, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_chain
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")


def hard(x):
    return np.clip(x + 3, 0, 6)


def erf(x):
    import math

    return np.vectorize(math.erf)(x)


REFERENCE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "square": np.square, "sqrt": np.sqrt, "reciprocal": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.where(x < 0, 0, x), "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, x * slope), "maximum": np.maximum, "minimum": np.minimum,
    "clamp_min": np.maximum, "clamp_max": np.minimum, "hardsigmoid": lambda x: hard(x) / 6,
    "hardswish": lambda x: x * hard(x) / 6, "floor": np.floor, "ceil": np.ceil,
    "round": np.round, "trunc": np.trunc, "exp": np.exp, "log": np.log,
    "tanh": np.tanh, "erf": erf, "sin": np.sin, "cos": np.cos, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)), "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, "pow": np.power,
}  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 3.5, -3.5, 20.0, -20.0, np.inf, -np.inf, np.nan, 1e-30, 88.0, -88.0])


def run(shape, arrays, steps, outs):
    arrays = [np.ascontiguousarray(a, "f4") for a in arrays]
    found = native_chain.bind_chain(Device(), shape, [a.shape for a in arrays], steps, outs, {})
    return None if found is None else found(*arrays)


@pytest.mark.parametrize("name", native_chain._NAMES)
@pytest.mark.parametrize("size", [1, 14, 17, 511, 512, 513, 5000])
def test_op(name, size):
    rng = np.random.default_rng(size)
    x = np.resize(np.concatenate([SPECIAL, 3 * rng.standard_normal(200)]), size).astype("f4")
    y = (1 + rng.random(size)).astype("f4")
    binary = native_chain.has_op(name, 2)
    with np.errstate(all="ignore"):
        want = REFERENCE[name](*(v.astype("f8") for v in ((x, y) if binary else (x,))))
    got = run((size,), [x, y] if binary else [x], [(name, (0, 1) if binary else (0,))], [2 if binary else 1])
    np.testing.assert_allclose(got, want.astype("f4"), rtol=3e-6, atol=1e-6)


def test_zeros_of_both_signs_are_two_numbers():
    got = run((2,), [np.array([-0.0, 0.0])], [("add", (0, 0.0)), ("add", (0, -0.0))], [1, 2])
    assert np.signbit(got[0]).tolist() == [False, False] and np.signbit(got[1]).tolist() == [True, False]


def test_squares():
    x = np.array([-3.0, 0.5, np.inf, np.nan], "f4")
    np.testing.assert_array_equal(run((4,), [x], [("pow", (0, 2.0))], [1]), x * x)


def test_set_of_ops():
    assert set(native_chain._NAMES) == set(REFERENCE)
    assert not native_chain.has_op("add", 1) and not native_chain.has_op("lgamma", 1)


@pytest.mark.parametrize(
    "other", [(), (1,), (1, 1, 1), (4,), (3, 4), (1, 4), (5, 3, 4), (5, 1, 1), (1, 3, 4), (5, 3, 1), (3, 1)]
)
def test_repeated_arrays(other):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 3, 4)), rng.standard_normal(other)
    np.testing.assert_allclose(run((5, 3, 4), [x, y], [("mul", (0, 1))], [2]), (x * y).astype("f4"), rtol=1e-6)
    np.testing.assert_allclose(run((5, 3, 4), [x, y], [("sub", (1, 0))], [2]), (y - x).astype("f4"), rtol=1e-5)


def test_array_repeated_in_the_middle_is_refused():
    x, y = np.ones((5, 3, 4)), np.ones((5, 1, 4))
    assert run((5, 3, 4), [x, y], [("mul", (0, 1))], [2]) is None


def test_random_chains():
    """Values are used once, often, or as results; registers are used again."""
    rng = np.random.default_rng(4)
    names = ["add", "sub", "mul", "maximum", "relu", "neg", "hardsigmoid", "tanh"]
    for _ in range(200):
        shape = tuple(map(int, rng.integers(1, 30, int(rng.integers(1, 4)))))
        given = [rng.standard_normal(shape).astype("f4") for _ in range(int(rng.integers(1, 4)))]
        values, steps = [g.astype("f8") for g in given], []
        for _ in range(int(rng.integers(1, 12))):
            name = names[int(rng.integers(len(names)))]
            operands = []
            for _ in range(2 if native_chain.has_op(name, 2) else 1):
                number = float(np.float32(rng.standard_normal()))
                operands.append(number if operands and rng.random() < 0.2 else int(rng.integers(len(values))))
            steps.append((name, tuple(operands)))
            values.append(REFERENCE[name](*(values[v] if isinstance(v, int) else v for v in operands)))
        made = range(len(given), len(values))
        outs = sorted({made[-1], *map(int, rng.choice(made, int(rng.integers(1, 3))))})
        got = run(shape, given, steps, outs)
        for value, result in zip(outs, got if isinstance(got, tuple) else (got,), strict=True):
            np.testing.assert_allclose(result, values[value], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "low", "high"), [("u1", 0.0, 255.0), ("i1", -128.0, 127.0)])
@pytest.mark.parametrize("size", [1, 511, 512, 513, 5000])
def test_quantized_values(size, dtype, low, high):
    """A chain reads and writes 8-bit integers."""
    rng = np.random.default_rng(size)
    x, levels = (
        (200 * rng.standard_normal(size)).astype("f4"),
        rng.integers(low, high, size, endpoint=True).astype(dtype),
    )
    steps = [("clamp_min", (0, low)), ("clamp_max", (2, high)), ("trunc", (3,)), ("trunc", (1,)), ("add", (4, 5))]
    dtypes = {1: np.dtype(dtype), 4: np.dtype(dtype)}
    chain = native_chain.bind_chain(Device(), (size,), [(size,), (size,)], steps, [4, 6], dtypes)
    narrow, total = chain(x, levels)
    want = np.trunc(np.clip(x, low, high))
    assert narrow.dtype == dtype and np.array_equal(narrow, want.astype(dtype))
    assert total.dtype == "f4" and np.array_equal(total, want + levels)
    assert native_chain.bind_chain(Device(), (2, 3), [(2, 3), (3,)], [("add", (0, 1))], [2], {1: dtypes[1]}) is None


def test_dtypes_of_casts():
    single, byte, word = np.dtype("f4"), np.dtype("u1"), np.dtype("i4")
    assert native_chain.serves("to", 1, [byte, single]) and native_chain.serves("to", 1, [single, byte])
    assert not native_chain.serves("to", 1, [byte, byte]) and not native_chain.serves("to", 1, [single, single])
    assert not native_chain.serves("to", 1, [word, single])
    assert not native_chain.serves("add", 2, [byte, byte, byte])


def test_numbers_of_numpy():
    found = native_chain.bind_chain(Device(), (3,), [(3,), ()], [("mul", (0, 1))], [2], {})
    np.testing.assert_array_equal(found(np.ones(3, "f4"), np.float32(2)), [2, 2, 2])


def test_too_many_values_are_refused():
    arrays = [np.ones(3)] * 40
    assert run((3,), arrays, [("add", (0, 1))], [40]) is None
