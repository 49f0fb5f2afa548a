"""Kernels for images with channels last, compared with convolutions and poolings in float64."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import torchlite as torch
from torchlite._settings import thread_count
from torchlite_backends.cc import channels_last, convolution, cxx_compiler, native_chain
from torchlite_backends.cc.device import Device, address
from torchlite_backends.numpy.bound_kernels import PoolGeometry
from torchlite_backends.numpy.conv_geometry import get_conv_geometry

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not() or "there is a compiler")

F = torch.nn.functional
# Batch, channels, filters, size, kernel, stride, padding, dilation, groups.
CASES = {
    "one number": (1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1": (2, 40, 50, (7, 9), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1 with a stride": (2, 24, 17, (9, 8), (1, 1), (2, 3), (0, 0), (1, 1), 1),
    "1x1 with padding": (1, 16, 8, (5, 5), (1, 1), (1, 1), (2, 1), (1, 1), 1),
    "1024 channels": (1, 1024, 33, (4, 5), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "600 channels": (1, 600, 20, (3, 3), (3, 3), (1, 1), (1, 1), (2, 1), 1),
    "first layer": (2, 3, 16, (31, 33), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    "first layer, 7x7": (1, 3, 12, (30, 29), (7, 7), (2, 2), (3, 3), (1, 1), 1),
    "one channel": (1, 1, 32, (20, 24), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "few channels, dilated": (1, 5, 18, (14, 15), (3, 2), (1, 2), (2, 1), (2, 3), 1),
    "few channels, wide padding": (1, 4, 3, (3, 2), (3, 3), (1, 1), (4, 5), (1, 1), 1),
    "strided": (1, 16, 24, (33, 31), (5, 5), (2, 2), (2, 2), (1, 1), 1),
    "wide padding": (1, 20, 9, (3, 2), (3, 3), (2, 1), (4, 5), (1, 1), 1),
    "filtering": (1, 24, 40, (18, 22), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "filtering, odd": (3, 17, 19, (13, 11), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "filtering, no padding": (2, 32, 16, (15, 12), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "filtering, wide padding": (1, 16, 33, (7, 8), (3, 3), (1, 1), (3, 2), (1, 1), 1),
    "filtering, dilated": (2, 16, 24, (17, 19), (3, 3), (1, 1), (1, 1), (2, 1), 1),
    "filtering, dilated both ways": (2, 20, 16, (22, 25), (3, 3), (1, 1), (3, 2), (3, 2), 1),
    "filtering, wider than a part": (1, 16, 16, (3, 300), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "groups": (2, 32, 36, (10, 9), (3, 3), (1, 1), (1, 1), (1, 1), 2),
    "groups of four": (1, 12, 21, (8, 9), (3, 3), (2, 2), (1, 1), (2, 2), 3),
    "depthwise": (2, 48, 48, (24, 23), (3, 3), (1, 1), (1, 1), (1, 1), 48),
    "depthwise, 5x5 with a stride": (1, 19, 19, (17, 16), (5, 5), (2, 2), (2, 2), (1, 1), 19),
    "depthwise, dilated": (1, 33, 33, (9, 12), (3, 3), (1, 2), (2, 3), (2, 3), 33),
    "depthwise, wide padding": (1, 3, 3, (2, 3), (3, 3), (1, 1), (4, 4), (1, 1), 3),
}
LIMITS = {"plain": None, "relu": (0.0, np.inf), "relu6": (-0.5, 0.5)}
CHAIN = [("sigmoid", (0,)), ("mul", (0, 3)), ("add", (4, 1)), ("mul", (5, 2)), ("add", (6, 1.5))]


def bind_chain(*what):
    return native_chain.bind_chain(Device(), *what, {})


@pytest.fixture(scope="module")
def run():
    return convolution.load_convolutions(True)


@pytest.fixture(params=[1, 3], ids="threads={}".format)
def threads(request, monkeypatch):
    monkeypatch.setattr(convolution, "get_threads", lambda: request.param)
    monkeypatch.setattr(thread_count, "get_threads", lambda: request.param)
    monkeypatch.setattr(channels_last, "_MIN_MULS_PER_THREAD", 0)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def to_last(x):
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def from_last(x):
    return x.transpose(0, 3, 1, 2)


def arguments(case, bias=True):
    plan = get_conv_geometry(*CASES[case])
    x = numbers(0, plan.batch, plan.channels, *plan.size)
    weight = numbers(1, plan.filters, plan.channels // plan.groups, *plan.kernel)
    weight /= np.float32(np.sqrt(weight[0].size))
    return plan, x, weight, numbers(2, plan.filters) if bias else None


def convolved(plan, x, weight, bias, limits=None):
    given = [None if a is None else torch.from_numpy(a.astype("f8")) for a in (x, weight, bias)]
    out = F.conv2d(*given, plan.stride, plan.padding, plan.dilation, plan.groups)
    return out.numpy() if limits is None else np.clip(out.numpy(), *limits)


def assert_close(found, want):
    scale = max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0))
    np.testing.assert_allclose(found / scale, want / scale, rtol=0, atol=2e-6)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("case", CASES)
def test_convolution(run, threads, case, limits):
    plan, x, weight, bias = arguments(case, limits != "relu")
    bound = channels_last.bind_convolution(run, plan, weight, bias, LIMITS[limits])
    found = bound(to_last(x))
    assert found.shape == (plan.batch, *plan.out, plan.filters)
    assert_close(from_last(found), convolved(plan, x, weight, bias, LIMITS[limits]))
    np.testing.assert_array_equal(bound(to_last(x)), found)


def test_packed_weights_begin_at_a_cache_line():
    for groups in (1, 2):
        packed = channels_last.pack_weights(numbers(groups, 36, 24, 3, 3), groups, 16)
        assert address(packed) % 64 == 0 and packed.flags.c_contiguous


def test_weights_are_laid_out_without_a_further_copy():
    weight = numbers(1, 300, 700)
    tracemalloc.start()
    packed = channels_last.pack_weights(weight, 1, 16)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.3 * packed.nbytes
    assert np.array_equal(packed[0, : 32 * 700].reshape(700, 32), weight[:32].T)
    last = packed[0, -16 * 700 :].reshape(700, 16)  # 12 filters, and zeros up to a whole vector
    assert np.array_equal(last[:, :12], weight[288:].T) and not last[:, 12:].any()


def test_parts_have_equally_many_positions(run):
    plan = get_conv_geometry(1, 512, 512, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1), 1)
    bound = channels_last.bind_convolution(run, plan, numbers(0, 512, 512, 1, 1), None, None)
    assert (bound._parts, bound._fixed[8 * 7 : 8 * 8]) == (5, (10).to_bytes(8, "little"))  # of 49


@pytest.mark.parametrize("case", ["1x1", "first layer", "filtering, odd", "depthwise", "groups"])
def test_channels_of_a_larger_array(run, case):
    plan, x, weight, bias = arguments(case)
    whole = numbers(3, plan.batch, *plan.size, plan.channels + 7)
    part = whole[..., 3:-4]
    part[...] = to_last(x)
    bound = channels_last.bind_convolution(run, plan, weight, bias, None)
    np.testing.assert_array_equal(bound(part), bound(to_last(x)))
    turned = to_last(x).transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)  # is copied
    np.testing.assert_array_equal(bound(turned), bound(to_last(x)))


@pytest.mark.parametrize("case", [case for case in CASES if case != "one number"])
def test_chain_behind_a_convolution(run, threads, case):
    plan, x, weight, bias = arguments(case)
    bound = channels_last.bind_convolution(run, plan, weight, bias, None)
    shape = plan.batch, *plan.out, plan.filters
    more, column = numbers(4, *shape), numbers(5, 1, 1, 1, plan.filters)
    chain = bind_chain(shape, [shape, shape, column.shape], CHAIN, [6, 7])
    joined = bound.with_chain(chain, 0)
    want = chain(bound(to_last(x)), more, column)
    for found in (joined(to_last(x), more, column), joined(to_last(x), more, column)):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_chains_that_stay_apart(run):
    """Arrays that repeat along rows or images have no part for a part of the results."""
    plan, _, weight, _ = arguments("1x1")
    bound = channels_last.bind_convolution(run, plan, weight, None, None)
    shape = plan.batch, *plan.out, plan.filters
    steps = [("add", (0, 1))]
    for other in ((plan.batch, *plan.out, 1), (1, *plan.out, plan.filters)):
        chain = bind_chain(shape, [shape, other], steps, [2])
        assert chain is not None and bound.with_chain(chain, 0) is None
    chain = bind_chain(shape, [(1, 1, 1, plan.filters), shape], steps, [2])
    assert bound.with_chain(chain, 0) is None and bound.with_chain(chain, 1) is not None
    other = bind_chain((2, *shape), [(2, *shape)], [("exp", (0,))], [1])
    assert bound.with_chain(other, 0) is None


@pytest.mark.parametrize("case", ["filtering", "1x1", "depthwise", "first layer"])
def test_values_that_are_not_finite(run, case):
    plan, x, weight, bias = arguments(case)
    x[0, 0, 1, 2], x[-1, -1, 3, 3] = np.inf, np.nan
    bound = channels_last.bind_convolution(run, plan, weight, bias, (0.0, np.inf))
    want = convolved(plan, x, weight, bias, (0.0, np.inf))
    assert np.isnan(want).any() and np.isinf(want).any()
    assert_close(from_last(bound(to_last(x))), want)
    shape = plan.batch, *plan.out, plan.filters
    chain = bind_chain(shape, [shape], [("neg", (0,))], [1])
    assert_close(from_last(bound.with_chain(chain, 0)(to_last(x))), -want)


def test_groups_of_few_channels(run):
    plan = get_conv_geometry(1, 8, 16, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1), 4)
    assert channels_last.bind_convolution(run, plan, numbers(0, 16, 2, 3, 3), None, None) is None


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    "window", [((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 5), (2, 1), (1, 2), (1, 1)), ((3, 2), (1, 3), (1, 0), (2, 3))]
)
@pytest.mark.parametrize("shape", [(2, 19, 11, 13), (1, 64, 8, 8), (1, 3, 9, 7)])
def test_max_pool(run, threads, shape, window, ceil_mode):
    x = numbers(0, *shape)
    x[0, 0, 4, 4], x[-1, -1, 2, 3] = np.nan, -np.inf
    want = F.max_pool2d(torch.from_numpy(x), *window, ceil_mode).numpy()
    plan = PoolGeometry(*shape[:2], shape[2:], *window, want.shape[2:])
    bound = channels_last.bind_max_pool(run, plan)
    np.testing.assert_array_equal(from_last(bound(to_last(x))), want)
    chain = bind_chain(bound.shape, [bound.shape], [("neg", (0,))], [1])
    np.testing.assert_array_equal(from_last(bound.with_chain(chain, 0)(to_last(x))), -want)


@pytest.mark.parametrize("shape", [(2, 19, 11, 13), (1, 200, 2, 96), (3, 1, 5, 1), (1, 64, 100, 90)])
def test_means_and_copies(run, threads, shape):
    x = numbers(0, *shape)
    batch, channels, high, wide = shape
    found = channels_last.bind_means(run, (batch, high, wide, channels))(to_last(x))
    assert found.shape == (batch, 1, 1, channels)
    assert_close(found, x.astype("f8").mean((2, 3))[:, None, None])
    wider = np.concatenate([to_last(x), to_last(x)], 3)[..., :channels]
    np.testing.assert_array_equal(channels_last.bind_means(run, wider.shape)(wider), found)
    np.testing.assert_array_equal(channels_last.bind_turn(run, shape, True)(x), to_last(x))
    np.testing.assert_array_equal(channels_last.bind_turn(run, to_last(x).shape, False)(to_last(x)), x)


@pytest.mark.parametrize("channels", [2, 3, 4, 5, 16, 17, 40])
def test_copies_of_few_and_of_odd_channels(run, channels):
    x = numbers(0, 2, channels, 9, 11)
    np.testing.assert_array_equal(channels_last.bind_turn(run, x.shape, True)(x), to_last(x))
    np.testing.assert_array_equal(channels_last.bind_turn(run, to_last(x).shape, False)(to_last(x)), x)


def test_arrays_side_by_side(run, threads):
    arrays = [numbers(k, 2, 9, 30, channels) for k, channels in enumerate((16, 3, 40, 1))]
    arrays.append(numbers(5, 2, 9, 30, 30)[..., 4:21])
    join = channels_last.Join(run, [a.shape for a in arrays])
    np.testing.assert_array_equal(join(arrays), np.concatenate(arrays, 3))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("rows", "channels", "filters"),
    [((2,), 7, 5), ((4, 5), 64, 200), ((20,), 1024, 70), ((4, 50), 96, 100), ((1100,), 40, 48), ((130,), 1024, 33)],
)
def test_product(run, threads, rows, channels, filters, biased):
    x, weight = numbers(0, *rows, channels), numbers(1, filters, channels)
    bias = numbers(2, filters) if biased else None
    bound = channels_last.bind_product(run, x.shape, weight, bias)
    want = x.astype("f8") @ weight.astype("f8").T + (0 if bias is None else bias)
    assert_close(bound(x), want)
    assert_close(bound(x.swapaxes(0, -1).copy().swapaxes(0, -1)), want)


@pytest.mark.parametrize(("rows", "channels", "filters"), [((3,), 96, 200), ((4, 50), 1024, 100), ((2, 300), 40, 48)])
def test_product_with_a_chain(run, threads, rows, channels, filters):
    x, weight, bias = numbers(0, *rows, channels), numbers(1, filters, channels), numbers(2, filters)
    bound = channels_last.bind_product(run, x.shape, weight, bias)
    shape = *rows, filters
    more, vector = numbers(4, *shape), numbers(5, filters)
    chain = bind_chain(shape, [shape, shape, vector.shape], CHAIN, [6, 7])
    joined = bound.with_chain(chain, 0)
    for given in (x, np.concatenate([x, x], -1)[..., :channels]):
        for a, b in zip(joined(given, more, vector), chain(bound(x), more, vector), strict=True):
            np.testing.assert_array_equal(a, b)
    other = bind_chain(shape[:-1] + (1,), [shape[:-1] + (1,)], [("exp", (0,))], [1])
    assert bound.with_chain(other, 0) is None


def test_products_that_blas_computes(run):
    """Many rows with a vector of few filters, or of eight numbers."""
    kernels, weight = channels_last.ChannelsLast(run), numbers(0, 33, 40)
    assert kernels.product((64, 40), weight, None) is not None
    assert kernels.product((65, 40), weight, None) is None
    served = kernels.product((65, 40), weight[:32], None) is not None
    assert served == (run._wide == 32)
