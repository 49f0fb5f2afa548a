"""The NumPy backend's convolutions, each way of computing them, against sums in float64."""

import itertools
import sys

import numpy as np
import pytest

import torchlite as torch
from torchlite._settings import thread_count
from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.numpy import (
    conv,
    conv_banded,
    conv_cpu_engine,
    conv_depthwise,
    conv_dilated,
    conv_geometry,
    conv_nonoverlapping,
    conv_row_bands,
    conv_volumes,
    winograd,
)

F = torch.nn.functional


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)
    monkeypatch.setattr(FLAGS, "mkldnn_enabled", False)
    monkeypatch.setattr(conv_cpu_engine, "_engine_convolutions", lambda: None)


def pair(value, count):
    return (value,) * count if isinstance(value, int) else tuple(value)


def windows(x, kernel, stride, padding, dilation):
    """(batch, channels, *out, *kernel) in float64."""
    n = len(kernel)
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in padding)])
    view = np.lib.stride_tricks.sliding_window_view(
        x, [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)], axis=tuple(range(2, 2 + n))
    )
    return view[(..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def plain(x, w, g, stride, padding, dilation, groups):
    """Output, and the gradients of input and weight for the gradient `g` (or one of ones), in float64."""
    n = x.ndim - 2
    view = windows(x, w.shape[2:], stride, padding, dilation)
    out_size, kernel = view.shape[2 : 2 + n], w.shape[2:]
    view = view.reshape(x.shape[0], groups, -1, *view.shape[2:])
    matrix = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    o, k = "xyz"[:n], "uvw"[:n]
    out = np.einsum(f"bgc{o}{k},gfc{k}->bgf{o}", view, matrix, optimize=True).reshape(x.shape[0], -1, *out_size)
    if g is None:
        return out
    rows = g.astype(np.float64).reshape(x.shape[0], groups, -1, *out_size)
    weight = np.einsum(f"bgc{o}{k},bgf{o}->gfc{k}", view, rows, optimize=True).reshape(w.shape)
    padded = np.zeros((*x.shape[:2], *(s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True))))
    for place in itertools.product(*(range(s) for s in kernel)):
        piece = np.einsum(f"bgf{o},gfc->bgc{o}", rows, matrix[(..., *place)], optimize=True)
        where = tuple(
            slice(j * d, j * d + (m - 1) * s + 1, s)
            for j, d, m, s in zip(place, dilation, out_size, stride, strict=True)
        )
        padded[(..., *where)] += piece.reshape(x.shape[0], -1, *out_size)
    inside = tuple(slice(p, p + s) for p, s in zip(padding, x.shape[2:], strict=True))
    return out, padded[(..., *inside)], weight


def case(rng, batch, channels, filters, size, kernel, groups=1, dtype="f4"):
    x = rng.standard_normal((batch, channels, *size)).astype(dtype)
    return x, rng.standard_normal((filters, channels // groups, *pair(kernel, len(size)))).astype(dtype)


def check(rng, x, w, stride=1, padding=0, dilation=1, groups=1, bias=None, tolerance=2e-6):
    """Output and gradients of the backend's convolution, compared; returned as they are."""
    n = x.ndim - 2
    geometry = [pair(v, n) for v in (stride, padding, dilation)]
    out = conv.convolution(x, w, bias, *geometry, False, (0,) * n, groups)
    g = rng.standard_normal(out.shape).astype(x.dtype)
    grads = conv._convolution_backward(g, x, w, *geometry, False, (0,) * n, groups, (True, True, True))
    expected = plain(x, w, g, *geometry, groups)
    if bias is not None:
        expected = (expected[0] + bias.reshape(-1, *(1,) * n), *expected[1:])
    tolerance = tolerance if x.dtype == np.float32 else tolerance * 1e-8
    for got, wanted in zip((out, *grads), (*expected, g.sum((0, *range(2, n + 2)), dtype="f8")), strict=True):
        assert got.shape == wanted.shape and got.dtype == x.dtype and got.flags.c_contiguous
        assert np.abs(got - wanted).max() <= tolerance * max(np.abs(wanted).max(), 1)
    return out, *grads


def test_one_image_is_cut_by_its_multiplications():
    def blocks(*args):
        return len(conv_geometry.get_conv_geometry(1, *args, (1, 1), (0, 0), (1, 1), 1).blocks)

    assert blocks(64, 256, (56, 56), (1, 1)) >= 2  # no more than 0.2 million elements to read
    assert blocks(64, 64, (28, 28), (1, 1)) == 1 and blocks(3, 4, (100, 100), (3, 3)) == 1


def test_where_the_batch_is_innermost_runs_stay_long(rng):
    plan = conv_geometry.get_conv_geometry(32, 6, 16, (14, 14), (5, 5), (1, 1), (0, 0), (1, 1), 1)
    assert plan.batch_inner and plan.images == 32 and len(plan.blocks) > 1
    many = conv_geometry.get_conv_geometry(256, 128, 160, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1), 1)
    assert many.batch_inner and many.images >= 32
    for batch in (20, 160):  # on the way back channels are shared, or images
        check(rng, *case(rng, batch, 128, 136, (9, 8), (3, 3)), stride=2, padding=1, tolerance=5e-6)


# -- dilated images as batches -------------------------------------------------------------------------


@pytest.mark.usefixtures("transforms_for_nothing")
@pytest.mark.parametrize(
    ("batch", "size", "padding", "dilation"),
    [
        (1, (26, 17), (2, 1), (2, 1)),
        (2, (13, 15), (3, 2), (3, 2)),  # phases of different lengths
        (1, (11, 12), 0, (1, 4)),
        (1, (9, 9), 12, 6),  # phases that read zeros alone
        (1, (5, 30), (5, 0), (7, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dilated(rng, monkeypatch, batch, size, padding, dilation, dtype):
    calls = []
    real = conv_dilated.conv_forward
    monkeypatch.setattr(conv_dilated, "conv_forward", lambda *a: calls.append(a) or real(*a))
    monkeypatch.setattr(winograd, "is_faster", lambda plan, dtype: plan.kernel == (3, 3) and max(plan.dilation) == 1)
    x, w = case(rng, batch, 32, 40, size, 3, dtype=dtype)
    check(rng, x, w, 1, padding, dilation, bias=rng.standard_normal(40).astype(dtype))
    assert calls


def test_dilated_where_it_pays():
    def is_faster(size, dilation, stride=1, groups=1, channels=128):
        plan = conv_geometry.get_conv_geometry(
            1, channels, 128, size, (3, 3), *(pair(v, 2) for v in (stride, dilation, dilation)), groups
        )
        return conv_dilated.is_faster(plan, np.dtype("f4"))

    assert is_faster((64, 64), 2) and is_faster((64, 64), (1, 3))
    assert not is_faster((64, 64), 1) and not is_faster((64, 64), 2, stride=2) and not is_faster((64, 64), 2, groups=2)
    assert not is_faster((16, 16), 12) and not is_faster((64, 64), 2, channels=8)


# -- dimensions that add nothing, and volumes as images ------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "flat"),
    [
        ((1, 9, 8), (1, 3, 3), 1, (0, 1, 1), (9, 8)),
        ((9, 1, 8), (3, 1, 3), (1, 2, 1), (1, 0, 0), (9, 8)),
        ((1, 30, 1), (1, 5, 1), (1, 2, 1), 0, (30,)),
        ((1, 1, 1), 1, 2, 0, (1,)),
        ((4, 5, 6), 1, 1, 0, (120,)),
        ((30, 1), (5, 1), (2, 1), (2, 0), (30,)),
        ((1, 30), (1, 5), 1, 0, None),  # an image's rows stay, as other algorithms serve for long ones
        ((1, 9, 8), (1, 3, 3), 1, 1, None),  # zeros around the only position
        ((4, 5, 6), 1, 2, 0, None),
        ((30,), 1, 1, 0, None),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_dimensions_that_add_nothing_are_dropped(rng, size, kernel, stride, padding, flat, groups):
    plan = conv_geometry.get_conv_geometry(
        2, 4, 6, size, *(pair(v, len(size)) for v in (kernel, stride, padding, 1)), groups
    )
    assert (plan.flat and plan.flat.size) == flat
    x, w = case(rng, 2, 4, 6, size, kernel, groups)
    check(rng, x, w, stride, padding, groups=groups, bias=rng.standard_normal(6).astype("f4"))


@pytest.fixture
def volumes_as_images(monkeypatch):
    monkeypatch.setattr(conv_volumes, "is_faster", lambda plan, dtype: len(plan.size) == 3)


@pytest.mark.usefixtures("volumes_as_images")
@pytest.mark.parametrize("gathered", [1, 3000, 1 << 22])
@pytest.mark.parametrize(
    ("batch", "size", "kernel", "stride", "padding", "dilation", "groups"),
    [
        (2, (7, 8, 9), 3, 1, 1, 1, 1),
        (1, (9, 6, 5), (3, 1, 2), (2, 1, 3), (2, 0, 1), (2, 1, 1), 2),
        (3, (5, 7, 6), (1, 3, 3), 1, (0, 1, 1), 1, 1),
        (2, (2, 6, 6), (5, 2, 2), (1, 2, 2), (3, 0, 0), 1, 4),  # slices that reach zeros alone
        (2, (6, 4, 4), (1, 2, 2), (3, 1, 1), 0, 1, 1),  # slices that nothing reads
    ],
)
def test_volumes(rng, monkeypatch, gathered, batch, size, kernel, stride, padding, dilation, groups):
    monkeypatch.setattr(conv_volumes, "_GATHERED", gathered)
    for dtype in ("f4", "f8"):
        x, w = case(rng, batch, 4, 8, size, kernel, groups, dtype)
        bias = rng.standard_normal(8).astype(dtype)
        check(rng, x, w, stride, padding, dilation, groups, bias)


def test_volumes_where_they_pay(monkeypatch):
    def is_faster(channels, size, kernel, groups=1, dtype="f4"):
        plan = conv_geometry.get_conv_geometry(
            1, channels, 8, size, pair(kernel, 3), *((n,) * 3 for n in (1, 0, 1)), groups
        )
        return conv_volumes.is_faster(plan, np.dtype(dtype))

    monkeypatch.setattr(conv_cpu_engine, "selected_engine", lambda: None)
    assert is_faster(8, (8, 8, 8), 3, groups=8) and is_faster(8, (4, 80, 80), 3)
    assert not is_faster(8, (8, 8, 8), 3) and not is_faster(8, (8, 8, 8), (3, 1, 1))
    monkeypatch.setattr(conv_cpu_engine, "selected_engine", object)
    assert is_faster(8, (8, 8, 8), 3) and not is_faster(8, (8, 8, 8), 3, dtype="f8")


# -- 3x3 by Winograd's way ---------------------------------------------------------------------------


@pytest.fixture
def transforms_for_nothing(monkeypatch):
    """Winograd's way for whatever it can compute."""
    monkeypatch.setattr(winograd, "_TRANSFORM", 0)
    monkeypatch.setattr(winograd, "_WEIGHT", 0)
    monkeypatch.setattr(winograd, "_PLACES", 0)


def test_winograd_where_it_pays():
    def is_faster(batch, channels, filters, size, kernel=3, stride=1, dilation=1, groups=1, dtype="f4"):
        plan = conv_geometry.get_conv_geometry(
            batch, channels, filters, size, *(pair(v, 2) for v in (kernel, stride, 1, dilation)), groups
        )
        return winograd.is_faster(plan, np.dtype(dtype))

    assert (
        is_faster(16, 128, 128, (16, 16))
        and is_faster(16, 256, 256, (8, 8))
        and is_faster(2, 128, 128, (28, 28), dtype="f8")
    )
    assert not is_faster(1, 128, 128, (28, 28)) and not is_faster(16, 512, 512, (4, 4))
    assert (
        not is_faster(1, 512, 512, (7, 7))
        and not is_faster(16, 16, 16, (32, 32))
        and not is_faster(16, 3, 64, (32, 32))
    )
    assert not any(is_faster(16, 128, 128, (16, 16), **{k: 2}) for k in ("stride", "dilation", "groups"))
    assert not is_faster(16, 128, 128, (16, 16), kernel=1) and not is_faster(16, 128, 128, (16, 16), dtype="c8")


WINOGRAD = [
    (2, 128, 128, (12, 12), 1),  # all products of the domain shared
    (3, 128, 130, (33, 15), 1),  # odd sizes
    (9, 128, 96, (8, 10), 1),  # images in blocks that are not equal
    (1, 320, 256, (30, 17), 1),  # a gradient too large for a sum a share
    (2, 130, 128, (19, 22), 0),  # no zeros around
    (2, 128, 128, (11, 14), 2),  # more of them, which the gradient of the input cuts away
    (2, 128, 128, (9, 12), (0, 1)),
]


@pytest.mark.parametrize(("batch", "channels", "filters", "size", "padding"), WINOGRAD)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.usefixtures("transforms_for_nothing")
def test_winograd_is_as_good_as_sums_of_products(rng, monkeypatch, batch, channels, filters, size, padding, dtype):
    calls = []
    for name in ("conv_forward", "weight_gradient"):
        real = getattr(winograd, name)
        monkeypatch.setattr(
            winograd, name, lambda *a, real=real, name=name, **k: (calls.append(name), real(*a, **k))[1]
        )
    x, w = case(rng, batch, channels, filters, size, 3, dtype=dtype)
    bias = rng.standard_normal(filters).astype(dtype)
    results = check(rng, x, w, padding=padding, bias=bias)
    assert calls.count("conv_forward") >= 1 and "weight_gradient" in calls
    assert all(np.isfinite(r).all() for r in results)


@pytest.mark.usefixtures("transforms_for_nothing")
def test_winograd_error_is_at_most_three_times_that_of_direct_convolution(rng, monkeypatch):
    x, w = case(rng, 4, 128, 128, (14, 14), 3)
    g = rng.standard_normal(x.shape).astype("f4")
    wanted = plain(x, w, g, (1, 1), (1, 1), (1, 1), 1)
    arguments = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)

    def errors():
        out = conv.convolution(x, w, None, *arguments)
        grads = conv._convolution_backward(g, x, w, *arguments, (True, True, False))
        return [np.sqrt(np.mean((a - b) ** 2)) for a, b in zip((out, *grads[:2]), wanted, strict=True)]

    ours = errors()
    monkeypatch.setattr(winograd, "is_faster", lambda plan, dtype: False)
    for a, b in zip(ours, errors(), strict=True):
        assert a <= 3 * b


@pytest.mark.usefixtures("transforms_for_nothing")
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_nonfinite_inputs_reach_only_their_windows(rng, monkeypatch, value):
    x, w = case(rng, 2, 128, 128, (16, 16), 3)
    x[1, 3, 5, 6] = value
    g = rng.standard_normal(x.shape).astype("f4")
    g[0, 7, 2, 3] = value
    arguments = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    with np.errstate(all="ignore"):
        ours = (
            conv.convolution(x, w, None, *arguments),
            *conv._convolution_backward(g, x, w, *arguments, (True, True, True)),
        )
        monkeypatch.setattr(winograd, "is_faster", lambda plan, dtype: False)
        without = (
            conv.convolution(x, w, None, *arguments),
            *conv._convolution_backward(g, x, w, *arguments, (True, True, True)),
        )
    for a, b in zip(ours, without, strict=True):
        assert np.array_equal(np.isfinite(a), np.isfinite(b)) and np.array_equal(np.isnan(a), np.isnan(b))


@pytest.mark.usefixtures("transforms_for_nothing")
@pytest.mark.parametrize("shape", [(9, 128, 128, (12, 14)), (2, 320, 256, (16, 16)), (2, 128, 128, (12, 12))])
def test_the_same_for_any_number_of_threads_and_order_in_memory(rng, monkeypatch, shape):
    x, w = case(rng, *shape, 3)
    g = rng.standard_normal((shape[0], shape[2], *shape[3])).astype("f4")
    arguments = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)

    def all_of(x, w, g):
        grads = conv._convolution_backward(g, x, w, *arguments, (True, True, False))[:2]
        return [a.tobytes() for a in (conv.convolution(x, w, None, *arguments), *grads)]

    last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (x, w, g)]
    turned = [a[:, :, ::-1].copy()[:, :, ::-1] for a in (x, w, g)]
    two = all_of(x, w, g)
    assert all_of(*last) == two == all_of(*turned)
    for count in (1, 3):
        monkeypatch.setattr(thread_count, "_count", count)
        assert all_of(x, w, g) == two


# -- depthwise -----------------------------------------------------------------------------------------


@pytest.fixture
def bands_for_all(monkeypatch):
    for name, value in {"_LARGE": 0, "_SHORTEST": 0, "_TALL": 0, "_BLOCK": 1 << 11, "TILE": 8}.items():
        monkeypatch.setattr(conv_banded, name, value)
    monkeypatch.setattr(conv_row_bands, "is_faster", lambda plan: False)
    conv_banded._make_band_layout.cache_clear()
    yield
    conv_banded._make_band_layout.cache_clear()


@pytest.fixture
def row_bands_for_all(monkeypatch):
    monkeypatch.setattr(conv_row_bands, "is_faster", lambda plan: len(plan.size) == 2)
    monkeypatch.setattr(conv_row_bands, "_CACHED", 1 << 12)
    monkeypatch.setattr(conv_row_bands, "_LITTLE", 0)


def bands(batch, channels, size, kernel=3, stride=1, dilation=1):
    n = len(size)
    plan = conv_geometry.get_conv_geometry(
        batch,
        channels,
        channels,
        size,
        (kernel,) * n,
        (stride,) * n,
        (dilation * (kernel // 2),) * n,
        (dilation,) * n,
        channels,
    )
    return plan, np.empty((batch, channels, *size), "f4")


def test_bands_where_they_pay():
    assert conv_banded.is_faster(*bands(8, 192, (16, 16))) and conv_banded.is_faster_for_weight_grad(
        *bands(8, 192, (16, 16))
    )
    assert conv_banded.is_faster(*bands(8, 96, (28, 28), 7)) and conv_banded.is_faster(*bands(8, 96, (64, 64), 3, 2))
    assert conv_banded.is_faster(*bands(2, 128, (2000,), 5)) and not conv_banded.is_faster_for_weight_grad(
        *bands(2, 128, (2000,), 5)
    )
    assert not conv_banded.is_faster(*bands(8, 960, (4, 4)))  # short rows
    assert not conv_banded.is_faster(*bands(1, 96, (28, 28)))  # few elements
    assert not conv_banded.is_faster(*bands(8, 192, (64, 64), 3, 1, 32))  # hardly anything but zeros


def test_row_bands_where_they_pay():
    def pay(*arguments):
        return conv_row_bands.is_faster(bands(*arguments)[0])

    assert pay(1, 144, (56, 56)) and pay(8, 96, (28, 28)) and pay(1, 64, (14, 14), 5) and pay(2, 768, (14, 14), 7)
    assert not pay(1, 384, (14, 14)) and not pay(1, 768, (7, 7), 7)  # small images
    assert pay(1, 96, (112, 112), 3, 2) and pay(1, 480, (6, 80), 5)
    assert not pay(1, 96, (112, 112), 3, 3) and not pay(1, 64, (28, 28), 3, 2) and not pay(2, 128, (2000,), 5)
    assert not pay(1, 64, (28, 28), 7, 1, 12)  # hardly anything but zeros


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(("stride", "bands"), [(1, "bands"), (2, "bands"), (1, "row_bands"), (2, "row_bands")])
def test_nonfinite_inputs_of_depthwise_reach_only_their_windows(request, rng, monkeypatch, value, stride, bands):
    request.getfixturevalue(f"{bands}_for_all")
    x, w = case(rng, 2, 8, 8, (11, 30), 3, 8)
    arguments = ((stride,) * 2, (1, 1), (1, 1), False, (0, 0), 8)
    g = rng.standard_normal(conv.convolution(x, w, None, *arguments).shape).astype("f4")
    x[1, 3, 5, 9] = g[0, 7, 2, 3] = value

    def all_of():
        grads = conv._convolution_backward(g, x, w, *arguments, (True, True, True))
        return conv.convolution(x, w, None, *arguments), *grads

    with np.errstate(all="ignore"):
        ours = all_of()
        monkeypatch.setattr(conv_banded, "is_faster", lambda plan, x: False)
        monkeypatch.setattr(conv_row_bands, "is_faster", lambda plan: False)
        without = all_of()
    for a, b in zip(ours, without, strict=True):
        assert np.array_equal(np.isfinite(a), np.isfinite(b)) and np.array_equal(np.isnan(a), np.isnan(b))


@pytest.mark.parametrize(
    ("batch", "channels", "size", "kernel", "stride", "padding", "dilation"),
    [
        (2, 5, (9, 7), 3, 1, 1, 1),
        (9, 70, (6, 5), 3, 1, 1, 1),  # several blocks of images and channels
        (1, 40, (61, 67), 3, 1, 1, 1),  # blocks of rows
        (5, 33, (25, 40), 3, 1, 1, 1),  # bands of rows, the last with fewer
        (3, 8, (23, 21), 5, 1, (3, 0), (2, 1)),
        (2, 33, (60, 40), 3, 2, 1, 1),
        (3, 8, (17, 19), 3, 2, 0, 1),
        (2, 6, (20, 21), (5, 2), (3, 1), (4, 0), (2, 3)),
        (2, 6, (4, 3), (3, 7), 1, (1, 3), 1),  # a kernel wider than the image
        (2, 6, (9, 9), 2, 4, 0, 1),  # inputs that no window looks at
        (2, 6, (5, 5), 1, 2, 2, 1),  # windows that look at no input
        (3, 17, (50,), 3, 1, 1, 1),
        (3, 17, (50,), 2, 1, 8, 8),
        (2, 17, (50,), 5, 3, 2, 1),
        (2, 7, (5, 6, 7), 3, 1, 1, 1),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bands", ["", "bands", "row_bands"])
def test_depthwise(request, rng, monkeypatch, bands, batch, channels, size, kernel, stride, padding, dilation, dtype):
    if bands:
        request.getfixturevalue(f"{bands}_for_all")
    x, w = case(rng, batch, channels, channels, size, kernel, channels, dtype)
    bias = rng.standard_normal(channels).astype(dtype)
    two = check(rng, x, w, stride, padding, dilation, channels, bias)
    geometry = [pair(v, len(size)) for v in (stride, padding, dilation)]
    arguments = (*geometry, False, (0,) * len(size), channels)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    again = conv.convolution(np.moveaxis(last, -1, 1), w[..., ::-1].copy()[..., ::-1], bias, *arguments)
    assert again.tobytes() == two[0].tobytes()
    g = rng.standard_normal(two[0].shape).astype(dtype)
    grads = conv._convolution_backward(g, x, w, *arguments, (True, True, False))[:2]
    monkeypatch.setattr(thread_count, "_count", 1)
    assert conv.convolution(x, w, bias, *arguments).tobytes() == two[0].tobytes()
    alone = conv._convolution_backward(g, x, w, *arguments, (True, True, False))[:2]
    assert [a.tobytes() for a in alone] == [a.tobytes() for a in grads]


@pytest.mark.parametrize("multiplier", [2, 3])
def test_several_filters_a_channel(rng, multiplier):
    x, w = case(rng, 3, 6, 6 * multiplier, (12, 11), 3, 6)
    check(rng, x, w, 1, 1, 1, 6)
    check(rng, x, w, 2, 1, 1, 6)


def test_depthwise_transposed(rng):
    """The gradient of the input is the transposed convolution."""
    g, w = rng.standard_normal((3, 20, 13, 9)).astype("f4"), rng.standard_normal((20, 1, 3, 3)).astype("f4")
    bias = rng.standard_normal(20).astype("f4")
    out = conv.convolution(g, w, bias, (2, 2), (1, 1), (1, 1), True, (1, 1), 20)
    x = np.zeros(out.shape, "f4")
    wanted = plain(x, w, g, (2, 2), (1, 1), (1, 1), 20)[1] + bias[:, None, None]
    assert np.abs(out - wanted).max() < 1e-5


@pytest.mark.parametrize(("shape", "last"), [((3, 40, 30, 31), False), ((3, 40, 30, 31), True), ((40, 700, 3), False)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_the_gradient_of_a_bias(rng, monkeypatch, shape, last, dtype):
    g = rng.standard_normal(shape).astype(dtype)
    if last:
        g = np.ascontiguousarray(np.moveaxis(g, 1, -1))
        g = np.moveaxis(g, -1, 1)
    wanted = g.astype("c16" if dtype == "c8" else "f8").sum((0, *range(2, g.ndim)))
    got = conv._compute_bias_gradient(g)
    assert got.dtype == g.dtype and np.abs(got - wanted).max() < 1e-3
    monkeypatch.setattr(thread_count, "_count", 1)
    assert conv._compute_bias_gradient(g).tobytes() == got.tobytes()


# -- patches side by side ------------------------------------------------------------------------------

PATCHES = [
    (5, 3, 20, (48, 32), 16, 16),
    (1, 3, 7, (40, 27), 8, 8),  # part of the image is in no patch
    (6, 4, 5, (21, 23), (5, 8), (5, 8)),
    (3, 2, 4, (9, 17), (9, 17), (9, 17)),
    (4, 3, 6, (83,), 8, 8),
    (2, 3, 6, (4, 9, 17), (2, 4, 8), (2, 4, 8)),
]


@pytest.mark.parametrize(("batch", "channels", "filters", "size", "kernel", "stride"), PATCHES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_patches(rng, monkeypatch, batch, channels, filters, size, kernel, stride, dtype):
    calls = []
    for name in ("conv_forward", "conv_transpose", "weight_gradient"):
        real = getattr(conv_nonoverlapping, name)
        monkeypatch.setattr(conv_nonoverlapping, name, lambda *a, name=name, real=real: calls.append(name) or real(*a))
    x, w = case(rng, batch, channels, filters, size, kernel, dtype=dtype)
    found = check(rng, x, w, stride, bias=rng.standard_normal(filters).astype(dtype))
    assert sorted(calls) == ["conv_forward", "conv_transpose", "weight_gradient"]
    monkeypatch.setattr(thread_count, "_count", 1)
    again = conv.convolution(x, w, None, *(pair(v, len(size)) for v in (stride, 0, 1)), False, (0,) * len(size), 1)
    monkeypatch.setattr(thread_count, "_count", 3)
    other = conv.convolution(x, w, None, *(pair(v, len(size)) for v in (stride, 0, 1)), False, (0,) * len(size), 1)
    assert np.array_equal(again, other) and again.shape == found[0].shape
    turned = np.asfortranarray(x)
    third = conv.convolution(turned, w, None, *(pair(v, len(size)) for v in (stride, 0, 1)), False, (0,) * len(size), 1)
    np.testing.assert_allclose(third, again, rtol=1e-4, atol=1e-4)


def test_patches_where_it_pays():
    def is_faster(kernel, stride, padding=0, dilation=1, groups=1, dtype="f4"):
        plan = conv_geometry.get_conv_geometry(
            2, 4, 4, (32, 32), *(pair(v, 2) for v in (kernel, stride, padding, dilation)), groups
        )
        return conv_nonoverlapping.is_faster(plan, np.dtype(dtype)), conv_nonoverlapping.is_faster_transposed(
            plan, np.dtype(dtype)
        )

    assert (
        is_faster(16, 16) == is_faster(8, 8) == (True, True)
        and is_faster(4, 4) == (False, True)
        and is_faster(2, 2) == (False, False)
    )
    for options in ({"padding": 1}, {"dilation": 2}, {"groups": 2}, {"dtype": "c8"}):
        assert is_faster(8, 8, **options) == (False, False)
    assert is_faster(8, 4) == (False, False)


@pytest.mark.parametrize(
    ("images", "channels", "multiplier", "size", "kernel", "dilation"),
    [
        (3, 4, 576, (8, 8), (6, 6), 1),  # of vmap(jacrev(conv2d))
        (256, 2, 3, (8, 8), (6, 6), 1),
        (2, 2, 7, (6, 6, 6), (4, 4, 4), 1),
        (5, 3, 2, (9,), (7,), 1),
        (2, 3, 5, (11, 12), (3, 2), 2),
        (2, 4, 2, (30, 30), (3, 3), 1),
    ],
)
def test_depthwise_with_many_filters_of_a_channel(images, channels, multiplier, size, kernel, dilation):
    """Forward and backward equal one convolution for each channel."""
    torch.manual_seed(0)
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(size)]
    x = torch.randn(images, channels, *size, dtype=torch.float64, requires_grad=True)
    w = torch.randn(channels * multiplier, 1, *kernel, dtype=torch.float64, requires_grad=True)
    out = conv(x, w, groups=channels, dilation=dilation)
    pieces = zip(x.chunk(channels, 1), w.chunk(channels), strict=True)
    expected = torch.cat([conv(piece, weight, dilation=dilation) for piece, weight in pieces], 1)
    assert torch.allclose(out, expected)
    g = torch.randn_like(out)
    for found, right in zip(torch.autograd.grad(out, (x, w), g), torch.autograd.grad(expected, (x, w), g), strict=True):
        assert torch.allclose(found, right)


@pytest.mark.parametrize("conv", [F.conv1d, F.conv2d, F.conv3d, F.conv_transpose1d, F.conv_transpose2d])
def test_calls_of_a_nested_vmap_do_not_grow_with_the_batch(conv):
    """`vmap(jacrev(conv))` of a weight: the same numbers as a loop, and calls that its size does not multiply."""
    dims = 3 if conv is F.conv3d else 1 if conv in (F.conv1d, F.conv_transpose1d) else 2
    counts = []
    for size in (4, 6):
        x, w = torch.rand(3, 1, 2, *[size] * dims), torch.rand(3, 2, 2, *[2] * dims)
        jacobian = torch.func.jacrev(lambda w, x: conv(x, w))
        nested = torch.func.vmap(jacobian)
        out = nested(w, x)
        assert torch.allclose(out, torch.stack([jacobian(a, b) for a, b in zip(w, x, strict=True)]))
        counts.append(_count_calls(lambda w=w, x=x, nested=nested: nested(w, x)))
    assert counts[1] < 1.3 * counts[0]


def _count_calls(function):
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event.endswith("call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [
        ((7, 7), (5, 5), (1, 1), (2, 2), (1, 1)),
        ((6, 9), (3, 2), (2, 1), (0, 3), (1, 1)),
        ((8, 5), (3, 3), (1, 2), (2, 1), (2, 1)),
        ((4, 4), (7, 7), (3, 3), (3, 3), (1, 1)),
        ((5,), (3,), (2,), (1,), (2,)),
    ],
)
def test_depthwise_sums_over_all_positions(rng, size, kernel, stride, padding, dilation, bias, dtype, monkeypatch):
    x = torch.from_numpy(rng.standard_normal((2, 6, *size)).astype(dtype))
    w = torch.from_numpy(rng.standard_normal((6, 1, *kernel)).astype(dtype))
    b = torch.from_numpy(rng.standard_normal(6).astype(dtype)) if bias else None
    conv = torch.nn.functional.conv1d if len(size) == 1 else torch.nn.functional.conv2d
    for module in conv_banded, conv_row_bands:
        monkeypatch.setattr(module, "is_faster", lambda *of: False)
    found = []
    for chosen in (True, False):
        monkeypatch.setattr(conv_depthwise, "_is_one_sum_faster", lambda plan, chosen=chosen: chosen)
        found.append(conv(x, w, b, stride, padding, dilation, groups=6))
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    torch.testing.assert_close(*found, rtol=tolerance, atol=tolerance)
    channels = [conv(x[:, c : c + 1], w[c : c + 1], None, stride, padding, dilation) for c in range(6)]
    expected = torch.cat(channels, 1) + (0 if b is None else b.view(6, *[1] * len(size)))
    torch.testing.assert_close(found[0], expected, rtol=tolerance, atol=tolerance)
    x[0, 2] = torch.inf
    monkeypatch.setattr(conv_depthwise, "_is_one_sum_faster", lambda plan: True)
    assert conv(x, w, b, stride, padding, dilation, groups=6)[:, 3:].isfinite().all()
