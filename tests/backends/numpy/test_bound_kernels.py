"""Kernels with constant arguments give what the ops' kernels give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torchlite_backends.numpy import backend, bound_kernels, conv_cpu_engine, conv_kernel_rows
from torchlite_backends.numpy.blas import has_avx512_kernels
from torchlite_backends.numpy.bound_kernels import Varying, bind_kernel
from torchlite_backends.numpy.conv_geometry import get_conv_geometry

# Batch, channels, filters, size, kernel, stride, padding, dilation, groups.
CONVOLUTIONS = {
    "gathered": (1, 5, 7, (3,), 3, 1, 1, 1, 1),
    "gathered images": (1, 4, 6, (5, 4), 3, 2, 1, 1, 1),
    "gathered, dilated": (1, 3, 6, (9,), 3, 1, 2, 2, 1),
    "one position": (1, 40, 30, (1, 1), 1, 1, 0, 1, 1),
    "one position of a signal": (1, 40, 30, (1,), 1, 1, 0, 1, 1),
    "batch": (3, 8, 12, (10, 11), 3, 1, 1, 1, 1),
    "depthwise": (1, 16, 16, (14, 14), 5, 1, 2, 1, 16),
    "depthwise, windows": (1, 16, 16, (9, 11), 3, 1, 1, 1, 16),
    "depthwise, windows of few": (1, 6, 6, (5, 4), 3, 1, 4, 2, 6),
    "depthwise, blocks of windows": (1, 130, 130, (40, 41), 3, 2, 1, 1, 130),
    "depthwise, a batch": (3, 6, 6, (9, 11), 3, 1, 0, 1, 6),
    "depthwise, bands of rows": (2, 20, 20, (50, 47), 3, 1, 1, 1, 20),
    "depthwise, bands with a stride": (1, 20, 20, (50, 47), 3, 2, 1, 1, 20),
    "depthwise, bands with a stride of rows": (2, 6, 6, (12, 80), 5, (2, 1), 2, 1, 6),
    "depthwise, bands with a stride of columns": (1, 6, 6, (9, 81), 5, (1, 2), (2, 0), 1, 6),
    "depthwise, windows of many channels": (1, 130, 130, (14, 14), 5, 1, 2, 1, 130),
    "depthwise signal": (1, 6, 6, (50,), 3, 1, 1, 1, 6),
    "one position of a kernel": (1, 12, 40, (9, 7), 1, 1, 0, 1, 1),
    "one position of a kernel, shared": (1, 64, 100, (40, 40), 1, 1, 0, 1, 1),
    "groups": (2, 8, 16, (14, 14), 3, 1, 1, 1, 2),
    "a volume of one slice": (2, 4, 6, (1, 9, 8), (1, 3, 2), 1, (0, 1, 1), 1, 1),
    "positions of a volume": (1, 6, 8, (3, 4, 5), 1, 1, 0, 1, 1),
    "volume": (2, 4, 6, (5, 6, 7), 3, 2, 1, 1, 2),
    "large": (1, 32, 32, (28, 28), 3, 1, 1, 1, 1),
    "kernel rows": (1, 16, 24, (20, 19), 3, 1, 1, 1, 1),
    "kernel rows with a stride": (1, 10, 40, (31, 30), 3, 2, 1, 1, 1),
    "kernel rows with strides": (1, 12, 17, (23, 40), (4, 5), (3, 2), (2, 0), 1, 1),
    "kernel rows with gaps": (1, 9, 33, (26, 22), (3, 2), 1, (2, 1), (2, 1), 1),
    "kernel rows of one column": (1, 20, 20, (30, 30), (3, 1), 1, (1, 0), 1, 1),
    "one kernel row": (1, 20, 20, (30, 30), (1, 3), (2, 1), (0, 1), 1, 1),
    "kernel rows, shared": (1, 48, 64, (41, 42), 3, 1, 1, 1, 1),
    "kernel rows of few filters": (1, 17, 5, (100, 90), 3, 1, 1, 1, 1),
}
CLAMPS = {"plain": None, "relu": (0.0, math.inf), "relu6": (0.0, 6.0)}


def varying(x):
    return Varying(x.shape, x.dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case, biased, clamp, dtype):
    batch, channels, filters, size, kernel, stride, padding, dilation, groups = CONVOLUTIONS[case]
    rng, rank = np.random.default_rng(0), len(size)
    kernel, stride, padding, dilation = (
        value if isinstance(value, tuple) else (value,) * rank for value in (kernel, stride, padding, dilation)
    )
    weight = rng.standard_normal((filters, channels // groups, *kernel)).astype(dtype)
    bias = rng.standard_normal(filters).astype(dtype) if biased else None
    rest = (stride, padding, dilation, False, (0,) * rank, groups)
    name = "convolution" if CLAMPS[clamp] is None else "_fused_conv_bn"
    norm = () if CLAMPS[clamp] is None else (None, None, None, None, 0.0, *CLAMPS[clamp])
    table = backend.kernels(0)
    found = None
    for _ in range(2):
        x = rng.standard_normal((batch, channels, *size)).astype(dtype)
        if found is None:
            found = bind_kernel(name, (varying(x), weight, bias, *rest, *norm))
        want = table[name](x, weight, bias, *rest, *norm)
        np.testing.assert_allclose(found(x), want, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-4)
        assert found(x).shape == want.shape


def test_kernel_rows_serve_their_cases():
    served = set()
    for case, (batch, channels, filters, size, *geometry, groups) in CONVOLUTIONS.items():
        kernel, stride, padding, dilation = (v if isinstance(v, tuple) else (v,) * len(size) for v in geometry)
        plan = get_conv_geometry(batch, channels, filters, size, kernel, stride, padding, dilation, groups)
        served |= {case} if conv_kernel_rows.is_faster(plan, np.dtype("f4")) else set()
    wanted = {case for case in CONVOLUTIONS if "kernel row" in case}
    assert served >= wanted if has_avx512_kernels(np.dtype("f4")) else not served


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e30])
def test_kernel_rows_keep_values_that_are_not_finite_in_their_windows(value):
    rng = np.random.default_rng(0)
    weight, x = (rng.standard_normal(shape).astype("f4") for shape in ((24, 16, 3, 3), (1, 16, 20, 19)))
    x[0, 3, 2, 18] = x[0, 5, 19, 0] = value
    rest = ((2, 1), (1, 1), (1, 1), False, (0, 0), 1)
    with np.errstate(all="ignore"):
        got = bind_kernel("convolution", (varying(x), weight, None, *rest))(x)
        want = backend.kernels(0)["convolution"](x, weight, None, *rest)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", [name for name in CONVOLUTIONS if name.startswith("depthwise")])
@pytest.mark.parametrize("value", [math.inf, math.nan, 1e30])
def test_values_that_are_not_finite_reach_only_their_windows(case, value):
    batch, channels, _, size, kernel, stride, padding, dilation, groups = CONVOLUTIONS[case]
    rng, rank = np.random.default_rng(0), len(size)
    weight = rng.standard_normal((channels, 1, *(kernel,) * rank)).astype("f4")
    x = rng.standard_normal((batch, channels, *size)).astype("f4")
    x[0, 3, 2] = value
    rest = (
        *(n if isinstance(n, tuple) else (n,) * rank for n in (stride, padding, dilation)),
        False,
        (0,) * rank,
        groups,
    )
    with np.errstate(all="ignore"):
        got = bind_kernel("convolution", (varying(x), weight, None, *rest))(x)
        want = backend.kernels(0)["convolution"](x, weight, None, *rest)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_batch_norm_is_folded():
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal((2, 4, 8, 8)).astype("f4"), rng.standard_normal((6, 4, 3, 3)).astype("f4")
    bias, scale, shift, mean = (rng.standard_normal(6).astype("f4") for _ in range(4))
    rest = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1, scale, shift, mean, mean**2 + 1, 1e-5, 0.0, math.inf)
    found = bind_kernel("_fused_conv_bn", (varying(x), weight, bias, *rest))
    want = backend.kernels(0)["_fused_conv_bn"](x, weight, bias, *rest)
    np.testing.assert_allclose(found(x), want, rtol=1e-4, atol=1e-4)


def test_directions_of_an_lstm_run_beside_each_other():
    rng = np.random.default_rng(2)

    def layer(hidden, reverse):
        weights = [0.1 * rng.standard_normal(shape).astype("f4") for shape in ((4 * hidden, 6), (4 * hidden, hidden))]
        states = [np.zeros((2, hidden), "f4")] * 2
        return bind_kernel("_lstm_layer", (Varying((5, 2, 6), np.dtype("f4")), *states, *weights, None, None, reverse))

    first, second, small = layer(128, False), layer(160, True), layer(16, True)
    x, y = rng.standard_normal((2, 5, 2, 6)).astype("f4")
    for got, want in zip(first.beside(second)(x, y), (*first(x), *second(y)), strict=True):
        assert got.shape == want.shape and got.tobytes() == want.tobytes()
    assert first.beside(small) is small.beside(first) is first.beside(np.tanh) is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (5, 1), (4, 3)])
def test_lstm(steps, batch, biased, reverse):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((steps, batch, 6)).astype("f4")
    h, c = (rng.standard_normal((batch, 8)).astype("f4") for _ in range(2))
    weights = [rng.standard_normal((32, n)).astype("f4") for n in (6, 8)]
    weights += [rng.standard_normal(32).astype("f4") if biased else None for _ in range(2)]
    want = backend.kernels(0)["_lstm_layer"](x, h, c, *weights, reverse)
    for state in ((h, c), (varying(h), varying(c))):
        found = bind_kernel("_lstm_layer", (varying(x), *state, *weights, reverse))
        got = found(x, *(value for value, given in zip((h, c), state, strict=True) if isinstance(given, Varying)))
        for a, b in zip(got[:3], want[:3], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("state_varies", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("steps", "batch", "dtype"), [(1, 1, "f4"), (5, 1, "f4"), (4, 3, "f8")])
def test_directions_of_a_gru_run_together(steps, batch, dtype, biased, state_varies):
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((steps, batch, 6)).astype(dtype) for _ in range(2))
    layers, calls = [], []
    for reverse in (False, True):
        h = rng.standard_normal((batch, 8)).astype(dtype)
        weights = [rng.standard_normal((24, n)).astype(dtype) for n in (6, 8)]
        weights += [rng.standard_normal(24).astype(dtype) if biased else None for _ in range(2)]
        layers.append(bind_kernel("_gru_layer", (varying(x), varying(h) if state_varies else h, *weights, reverse)))
        calls.append((h, *weights, reverse))
    if conv_cpu_engine.selected_engine() is not None:
        assert layers == [None, None]
        return
    kernel = backend.kernels(0)["_gru_layer"]
    for inputs in ((x, x), (x, y)):
        want = [kernel(one, *call) for one, call in zip(inputs, calls, strict=True)]
        given = [(one, call[0]) if state_varies else (one,) for one, call in zip(inputs, calls, strict=True)]
        both = layers[0].beside(layers[1])(*given[0], *given[1])
        for k, layer in enumerate(layers):
            for got in (layer(*given[k]), both[3 * k : 3 * k + 3]):
                for a, b in zip(got[:2], want[k][:2], strict=True):
                    assert a.shape == b.shape and a.dtype == b.dtype
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_layers_of_a_gru_that_do_not_run_together():
    def layer(units, features=6, kind="f4", steps=5):
        weights = [np.ones((3 * units, n), kind) for n in (features, units)]
        x = Varying((steps, 1, features), np.dtype(kind))
        return bind_kernel("_gru_layer", (x, np.zeros((1, units), kind), *weights, None, None, False))

    if conv_cpu_engine.selected_engine() is None:
        for other in (layer(9), layer(8, features=4), layer(8, kind="f8"), layer(8, steps=4), np.tanh):
            assert layer(8).beside(other) is None
    assert layer(256) is None
    x, weight = Varying((5, 1, 6), np.dtype("f4")), np.ones((24, 6), "f4")
    assert bind_kernel("_gru_layer", (x, np.zeros((1, 8), "f4"), weight, varying(weight), None, None, False)) is None
    assert bind_kernel("_gru_layer", (x, np.zeros((1, 8)), weight, weight, None, None, False)) is None


def test_left_to_the_kernel():
    x, weight = Varying((1, 2, 4), np.dtype("f4")), np.ones((3, 2, 3), "f4")
    rest = ((1,), (0,), (1,), False, (0,), 1)
    assert bind_kernel("sigmoid", (x,)) is None
    assert bind_kernel("convolution", (x, Varying(weight.shape, weight.dtype), None, *rest)) is None
    assert bind_kernel("convolution", (x, weight.astype("f8"), None, *rest)) is None
    assert bind_kernel("convolution", (x, weight, None, (1,), (0,), (1,), True, (0,), 1)) is None
    assert bound_kernels._BINDERS.keys() == {
        "convolution", "_fused_conv_bn", "_gru_layer", "_lstm_layer", "linear", "matmul", "_quantized_convolution",
        "_quantized_matmul", "_recurrent_steps",
    }  # fmt: skip


@pytest.mark.parametrize(("shape", "features"), [((5, 64), 48), ((2, 9, 40), 70), ((64, 33), 33)])
def test_products(shape, features):
    rng, table = np.random.default_rng(4), backend.kernels(0)
    x, weight = rng.standard_normal(shape).astype("f4"), rng.standard_normal((features, shape[-1])).astype("f4")
    calls = [("linear", (weight, bias)) for bias in (None, rng.standard_normal(features).astype("f4"))]
    for name, constants in (*calls, ("matmul", (np.ascontiguousarray(weight.T),))):
        found = bind_kernel(name, (varying(x), *constants))
        assert (found is None) == (not _has_products())
        if found is not None:
            want = table[name](x, *constants)
            assert found(x).shape == want.shape
            np.testing.assert_allclose(found(x), want, rtol=1e-5, atol=1e-4)


def _has_products():
    engine = conv_cpu_engine.selected_engine()
    return engine is not None and engine.channels_last() is not None


def test_products_left_to_the_kernel():
    x, weight = Varying((5, 64), np.dtype("f4")), np.ones((48, 64), "f4")
    assert bind_kernel("linear", (x, varying(weight), None)) is None
    assert bind_kernel("linear", (x, weight, varying(weight[:, 0]))) is None
    assert bind_kernel("linear", (x, weight.astype("f8"), None)) is None
    assert bind_kernel("linear", (x._replace(dtype=np.dtype("f8")), weight, None)) is None
    assert bind_kernel("linear", (x._replace(shape=(1, 64)), weight, None)) is None
    # of 17 columns most of the last vector would be empty
    assert bind_kernel("linear", (x._replace(shape=(65, 64)), weight[:17], None)) is None
    assert bind_kernel("linear", (x, weight[:15], None)) is None
    assert bind_kernel("matmul", (x, varying(weight.T))) is None
    assert bind_kernel("matmul", (x, np.ones((2, 64, 48), "f4"))) is None
    small, other = Varying((5, 64), np.dtype("u1")), np.ones((64, 48), "i1")
    assert bind_kernel("_quantized_matmul", (small, varying(other))) is None
    image, kernel = Varying((1, 4, 6, 6), np.dtype("u1")), np.ones((8, 4, 3, 3), "i1")
    rest = (None, None, None, None, None, (1, 1), (0, 0), (1, 1), 1)
    assert bind_kernel("_quantized_convolution", (image, varying(kernel), *rest)) is None
    sums, state, weight = Varying((4, 1, 5), np.dtype("f4")), np.zeros((1, 1, 5), "f4"), np.ones((1, 5, 5), "f4")
    rest = (state, None, None, None, None, None, None, "rnn", (False,), (("tanh", None, None),), None, False)
    assert bind_kernel("_recurrent_steps", (sums, varying(weight), *rest)) is None
    assert bind_kernel("_recurrent_steps", (np.ones((4, 1, 5), "f4"), weight, *rest)) is None
