"""`torchlite_backends.array.window_reductions`: windows of any length, in a bounded number of NumPy calls."""

import itertools
import sys

import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.array import pooling, window_reductions

F = torch.nn.functional


def _windows(x, kernel, stride, dilation):
    count = (len(x) - dilation * (kernel - 1) - 1) // stride + 1
    return np.stack([x[i * stride : i * stride + dilation * (kernel - 1) + 1 : dilation] for i in range(count)])


@pytest.mark.parametrize("kernel", [1, 2, 4, 5, 7, 16, 30])
@pytest.mark.parametrize("stride", [1, 2, 5, 40])
@pytest.mark.parametrize("dilation", [1, 3])
def test_sums_and_maxima(kernel, stride, dilation):
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, 120).astype("f4")
    expected = _windows(x, kernel, stride, dilation)
    out = len(expected)
    for axis, given in [(0, x), (1, x[None]), (0, np.stack([x, x], 1)), (1, np.stack([x, -x, x])[:, :, None])]:
        numbers = kernel, stride, dilation, out
        total = window_reductions.reduce_windows(given, axis, np.add, *numbers)
        best, place = window_reductions.argmax_windows(given, axis, *numbers)
        where = (0,) * axis + (slice(None),) + (0,) * (given.ndim - axis - 1)
        assert total[where].tolist() == expected.sum(1).tolist()
        assert best[where].tolist() == expected.max(1).tolist()
        first = expected.argmax(1) * dilation + np.arange(out) * stride
        assert place[where].tolist() == first.tolist()


def test_of_several_nans_the_last_one_is_the_place():
    x = np.array([1, np.nan, 3, np.nan, 2, 5, 5, 0, 1, 1, 1, 1], "f4")
    for kernel, stride in itertools.product((3, 6), (1, 3)):
        windows = _windows(x, kernel, stride, 1)
        out = len(windows)
        best, place = window_reductions.argmax_windows(x, 0, kernel, stride, 1, out)
        for i, window in enumerate(windows):
            nans = np.flatnonzero(window != window)
            assert place[i] == i * stride + (nans[-1] if len(nans) else window.argmax())
            assert np.isnan(best[i]) == bool(len(nans))


@pytest.mark.parametrize(("n", "out"), [(7, 3), (3, 7), (100, 3), (100, 99), (12, 12), (9, 1)])
def test_ranges_and_their_transpose(n, out):
    x = np.arange(1.0, n + 1)
    start, end = pooling._compute_adaptive_bounds(n, out)
    sums = window_reductions.sum_ranges(x, 0, start, end)
    best, place = window_reductions.argmax_ranges(x, 0, start, end)
    assert sums.tolist() == [x[a:b].sum() for a, b in zip(start, end, strict=True)]
    assert place.tolist() == [b - 1 for b in end] and best.tolist() == x[place].tolist()
    spread = np.zeros(n)
    for i, (a, b) in enumerate(zip(start, end, strict=True)):
        spread[a:b] += i + 1
    assert window_reductions.add_to_ranges(np.arange(1.0, out + 1), 0, start, end, n).tolist() == spread.tolist()


def _count_calls(function):
    """Return how many functions are called during one."""
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


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.adaptive_max_pool1d(x, 1),
        lambda x: F.adaptive_max_pool1d(x, 7),
        lambda x: F.adaptive_avg_pool1d(x, 7),
        lambda x: F.max_pool1d(x, 20_000),
        lambda x: F.max_pool1d(x, 10_000, 1),
        lambda x: F.max_pool1d(x, 200, dilation=100),
        lambda x: F.avg_pool1d(x, 20_000),
        lambda x: F.avg_pool1d(x, 10_000, 1),
        lambda x: F.lp_pool1d(x, 2, 20_000),
        lambda x: F.max_pool2d(x[None], (1, 20_000)),
        lambda x: F.max_pool3d(x[None, None], (1, 1, 20_000)),
        lambda x: F.fractional_max_pool2d(x.expand(1, 1, 2, -1), (1, 10_000), output_size=2),
    ],
)
def test_calls_do_not_grow_with_the_window(call):
    x = torch.arange(20_000.0).reshape(1, 1, -1).requires_grad_()
    call(x).sum().backward()  # generates the functions
    x.grad = None
    assert _count_calls(lambda: call(x).sum().backward()) < 3000
    assert x.grad.isfinite().all()


def test_windows_of_an_empty_batch():
    x = torch.empty(0, 9, 10**6)
    for call in (F.max_pool1d, F.avg_pool1d):
        assert call(x, 10**6).shape == (0, 9, 1)
    for call in (F.adaptive_max_pool1d, F.adaptive_avg_pool1d):
        assert call(x, 7).shape == (0, 9, 7)


def test_values_outside_a_window_do_not_reach_its_average():
    x = torch.tensor([[[float("inf"), 1.0, 2.0, 3.0, float("nan")]]])
    assert F.adaptive_avg_pool1d(x, 5).isfinite().tolist() == [[[False, True, True, True, False]]]
    assert F.adaptive_avg_pool1d(x[..., :4], 3).tolist() == [[[float("inf"), 1.5, 2.5]]]
    assert F.adaptive_avg_pool2d(x[..., :4].expand(1, 4, 4), 3)[0, 0].tolist() == [float("inf"), 1.5, 2.5]


def test_memory_of_averages_over_many_windows():
    """A matrix of windows would take 8 GB."""
    x = torch.ones(1, 1, 100_003, requires_grad=True)
    out = F.adaptive_avg_pool1d(x, 20_000)
    out.sum().backward()
    assert torch.equal(out, torch.ones_like(out)) and x.grad.sum().item() == pytest.approx(20_000, rel=1e-5)


@pytest.mark.parametrize(("kernel", "out"), [(40, 2), (3, 30), (30, 7)])
def test_fractional_windows(kernel, out):
    """Few long windows are slices, many are gathered: both give each window's largest element."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.permutation(2 * 80 * 70).reshape(1, 2, 80, 70).astype("f4"))
    samples = torch.from_numpy(rng.random((1, 2, 2)).astype("f4"))
    values, places = F.fractional_max_pool2d(x, kernel, output_size=out, return_indices=True, _random_samples=samples)
    for c in range(2):
        rows, columns = (
            pooling._fractional_window_starts(samples.numpy()[0, c, 1 - i], n, kernel, out)
            for i, n in enumerate((80, 70))
        )
        for i, j in itertools.product(range(out), repeat=2):
            window = x[0, c, rows[i] : rows[i] + kernel, columns[j] : columns[j] + kernel]
            assert values[0, c, i, j] == window.max() == x[0, c].flatten()[places[0, c, i, j]]
