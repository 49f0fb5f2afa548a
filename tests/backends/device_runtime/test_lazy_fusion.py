"""Pointwise ops that wait for one another: what comes out, in whatever order it is read, changed and dropped, and how
many launches it takes.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import torchlite as torch

N = 1 << 18


@pytest.fixture
def launches(opencl, monkeypatch):
    """The number of launches of pointwise kernels since the test's last `launches.clear()`."""
    from torchlite_backends.device_runtime.core.device import BoundedCache
    from torchlite_backends.opencl.device import OpenCLFunction

    state, started = torch.ones(1, device=opencl)._tl_array.device, []
    start = OpenCLFunction.start

    def counted(self, *arguments):
        started.append(self.name)
        return start(self, *arguments)

    monkeypatch.setattr(OpenCLFunction, "start", counted)
    monkeypatch.setattr(state, "plans", BoundedCache(20000))  # plans keep the method that they found
    monkeypatch.setattr(state, "_kept", {})
    return started


@pytest.fixture
def pair(opencl, rng):
    """Two large arrays, and the same on the device."""
    a, b = (rng.standard_normal((512, N // 512), dtype=np.float32) for _ in range(2))
    return a, b, torch.from_numpy(a).to(opencl), torch.from_numpy(b).to(opencl)


def test_a_chain_is_one_launch_from_its_second_time_on(pair, launches):
    a, b, x, y = pair
    expected = np.maximum(np.tanh(a * 2 + b) * a - b, 0)
    counts = []
    for _ in range(3):
        torch.opencl.synchronize()
        launches.clear()
        result = ((x * 2 + y).tanh() * x - y).relu()
        np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=2e-6, atol=2e-6)
        counts.append(len(launches))
    assert counts == [6, 1, 1]


def test_fused_kernels_take_new_scalars(pair):
    a, _, x, _ = pair
    for scale, shift in ((2, 0.5), (3, -1.0), (-1, 7.25)):
        np.testing.assert_allclose(
            ((x * scale + shift) / scale).cpu().numpy(), (a * scale + np.float32(shift)) / scale, rtol=1e-6, atol=1e-6
        )


def test_referenced_intermediates_are_stored(pair, launches):
    a, b, x, y = pair
    for _ in range(2):
        launches.clear()
        first = x + y
        second = first * y
        third = second - x
        torch.opencl.synchronize()
        count = len(launches)
        np.testing.assert_array_equal(first.cpu().numpy(), a + b)
        np.testing.assert_array_equal(second.cpu().numpy(), (a + b) * b)
        np.testing.assert_allclose(third.cpu().numpy(), (a + b) * b - a, rtol=1e-6, atol=1e-6)
    assert count == 1


def test_a_dropped_result_is_still_computed(pair, launches):
    _, _, x, y = pair
    torch.opencl.synchronize()
    launches.clear()
    x + y
    torch.opencl.synchronize()
    assert len(launches) == 1


def test_an_input_changed_later_was_read_before(pair):
    a, b, x, y = pair
    for _ in range(2):
        result = (x + y) * 2
        x.zero_()
        np.testing.assert_array_equal(result.cpu().numpy(), (a + b) * 2)
        x.copy_(torch.from_numpy(a))


def test_a_result_changed_in_place(pair):
    a, b, x, y = pair
    for _ in range(2):
        first = x + y
        second = first * 2
        first.add_(1)
        third = first * y
        np.testing.assert_array_equal(second.cpu().numpy(), (a + b) * 2)
        np.testing.assert_array_equal(third.cpu().numpy(), (a + b + 1) * b)


def test_a_view_of_a_result_that_waits(pair):
    a, b, x, y = pair
    for _ in range(2):
        first = x + y
        again = first.view(-1).view(first.shape)
        total = first * again
        np.testing.assert_array_equal(total.cpu().numpy(), (a + b) * (a + b))
        first = x * y
        first[3] = 1
        expected = a * b
        expected[3] = 1
        np.testing.assert_array_equal((first.t() + 1).cpu().numpy(), expected.T + 1)


def test_unrelated_ops_are_not_fused(pair):
    a, b, x, y = pair
    for _ in range(2):
        first, other, half = x.exp(), y.exp(), x[:256] + y[:256]
        np.testing.assert_allclose((first + other).cpu().numpy(), np.exp(a) + np.exp(b), rtol=1e-6)
        np.testing.assert_array_equal(half.cpu().numpy(), a[:256] + b[:256])


def test_long_chains_and_many_operands(pair, rng):
    a, b, x, y = pair
    many = [rng.standard_normal(a.shape, dtype=np.float32) for _ in range(20)]
    moved = [torch.from_numpy(m).to(x.device) for m in many]
    for _ in range(2):
        total, expected = x, a
        for m, on_device in zip(many, moved, strict=True):
            total, expected = total + on_device, expected + m
        np.testing.assert_array_equal(total.cpu().numpy(), expected)
        total, expected = x, a
        for _ in range(40):
            total, expected = total * 0.5 + y, expected * np.float32(0.5) + b
        np.testing.assert_allclose(total.cpu().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64", "float16", "bfloat16"])
def test_other_dtypes(pair, dtype):
    a, b, x, y = pair
    kind = getattr(torch, dtype)
    if kind is torch.float64 and not torch.opencl.get_device_properties(x.device).has_fp64:
        pytest.skip("the device has no double precision")

    def run(p, q):
        return ((p + q) * 3 - q).abs()

    expected = run(torch.from_numpy(a * 100).to(kind), torch.from_numpy(b * 100).to(kind)).double()
    for _ in range(2):
        torch.testing.assert_close(
            run((x * 100).to(kind), (y * 100).to(kind)).cpu().double(), expected, rtol=1e-6, atol=1e-3
        )


def test_gradients(pair):
    a, b, x, y = pair
    results = []
    for p, q in ((torch.from_numpy(a), torch.from_numpy(b)), (x, y), (x, y)):
        p, q = p.clone().requires_grad_(), q.clone().requires_grad_()
        ((p * 2 + q).tanh() * p - q.sigmoid()).square().mean().backward()
        results.append((p.grad.cpu(), q.grad.cpu()))
    for found in results[1:]:
        torch.testing.assert_close(found, results[0], rtol=1e-4, atol=1e-9)


def test_events_and_memory_counts_include_pending_work(pair):
    _, _, x, y = pair
    before = torch.opencl.memory_allocated()
    result = (x + y) * 2
    event = torch.opencl.Event()
    event.record()
    event.synchronize()
    assert torch.opencl.memory_allocated() == before + result.nbytes
    del result
    assert torch.opencl.memory_allocated() == before


def test_threads_share_pending_work(pair):
    a, b, x, y = pair
    failures = []

    def work(k):
        try:
            for _ in range(20):
                mine = (x * k + y) * k
                np.testing.assert_allclose(mine.cpu().numpy(), (a * k + b) * k, rtol=1e-5, atol=1e-5)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
