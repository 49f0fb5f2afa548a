"""Native products with weights of half precision, eight and four bits against products of float64."""

import numpy as np
import pytest

from torchlite_backends.cc import cxx_compiler, native_weight_only
from torchlite_backends.cc.device import Device

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")


@pytest.fixture(scope="module")
def engine_device():
    return Device()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8, 9, 33])
@pytest.mark.parametrize(("columns", "depth"), [(1, 1), (17, 15), (33, 64), (16, 130), (70, 259)])
def test_eight_bits(engine_device, rows, columns, depth):
    rng = np.random.default_rng(rows * depth)
    x, scales = rng.normal(size=(rows, depth)).astype("f4"), rng.random(columns, "f4")
    weight = rng.integers(-128, 127, (columns, depth), "i1", endpoint=True)
    got = native_weight_only.multiply_rows(engine_device, x, weight, scales)
    np.testing.assert_allclose(got, (x.astype("f8") @ weight.T) * scales, rtol=1e-5, atol=2e-3)


@pytest.mark.parametrize("rows", [1, 3, 6, 20])
@pytest.mark.parametrize(("columns", "depth"), [(17, 15), (33, 70), (70, 259)])
def test_half_precision(engine_device, rows, columns, depth):
    """Infinite, denormal and negative numbers among them."""
    rng = np.random.default_rng(rows * depth)
    x, scales = rng.normal(size=(rows, depth)).astype("f4"), np.ones(columns, "f4")
    weight = rng.normal(size=(columns, depth)).astype("f2")
    weight[:, :5] = [6e-8, -3e-6, 65504, -0.0, 2.0**-14]
    weight[3, depth - 1], weight[4, 0] = np.inf, -np.inf
    got = native_weight_only.multiply_rows(engine_device, x, weight, scales)
    want = np.stack([row.astype("f8") @ weight.astype("f8").T for row in x])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-2)


def test_a_row_does_not_depend_on_the_other_rows(engine_device):
    rng = np.random.default_rng(0)
    x, scales = rng.normal(size=(21, 100)).astype("f4"), rng.random(50, "f4")
    weight = rng.integers(-128, 127, (50, 100), "i1", endpoint=True)
    whole = native_weight_only.multiply_rows(engine_device, x, weight, scales)
    for rows in range(1, 21):
        got = native_weight_only.multiply_rows(engine_device, x[:rows], weight, scales)
        assert np.array_equal(got, whole[:rows])


@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize(("columns", "depth", "group"), [(1, 32, 32), (30, 96, 32), (7, 6, 6), (50, 4096, 4096)])
def test_levels_with_four_bits(engine_device, rows, columns, depth, group):
    rng = np.random.default_rng(rows * columns)
    levels = rng.choice(np.array([-255, -1, 0, 7, 255], "i4"), (rows, depth))
    numbers = rng.choice([0, 3, 8, 15], (columns, depth))
    scales = rng.normal(size=(columns, depth // group)).astype("f4")
    packed = np.concatenate([(numbers[:, ::2] | numbers[:, 1::2] << 4).reshape(-1), scales.reshape(-1)]).astype("f4")
    got = native_weight_only.multiply_int4_levels(engine_device, levels, packed, group, columns)
    want = np.zeros((rows, columns), "f4")
    for number, part in enumerate(range(0, depth, group)):
        sums = levels[:, part : part + group] @ (numbers[:, part : part + group].T - 8)
        want += sums.astype("f4") * scales[:, number]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("columns", [16, 64, 80, 176])
@pytest.mark.parametrize("group", [32, 128])
def test_four_bits(engine_device, rows, columns, group):
    rng = np.random.default_rng(rows * columns)
    depth = 2 * group
    x, levels = rng.normal(size=(rows, depth)).astype("f4"), rng.integers(0, 16, (columns, depth))
    factors = rng.normal(size=(2, columns, 2)).astype("f4")
    whole = columns // 64 * 64
    blocks = levels[:whole].reshape(-1, 2, 32, depth)
    rest = levels[whole:].reshape(-1, 2, depth)
    parts = (blocks[:, 0] | blocks[:, 1] << 4).transpose(0, 2, 1), (rest[:, 0] | rest[:, 1] << 4).T
    packed = np.concatenate([part.reshape(-1) for part in parts]).astype("u1").reshape(columns, depth // 2)
    got = native_weight_only.multiply_int4(engine_device, x, packed, group, factors)
    scale, zero = (np.repeat(factors[..., i], group, 0).T.astype("f8") for i in (0, 1))
    np.testing.assert_allclose(got, x @ ((levels - 8) * scale + zero).T, rtol=1e-5, atol=2e-4)
