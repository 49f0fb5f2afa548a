"""Work shared among the NumPy backend's threads."""

import threading

import numpy as np
import pytest

from torchlite._settings import thread_count
from torchlite_backends.numpy import cache_blocking
from torchlite_backends.numpy.activation import relu


@pytest.mark.parametrize("within", ["run", "share"])
@pytest.mark.parametrize("outside", ["run", "share"])
def test_nested_parallel_work_does_not_wait(monkeypatch, outside, within):
    monkeypatch.setattr(thread_count, "_count", 2)
    main, started, finished = threading.current_thread(), threading.Event(), threading.Event()
    waited, inner = [], []

    def note(*item):
        inner.append(threading.current_thread())

    def body(*item):
        if threading.current_thread() is not main:
            started.set()
            waited.append(finished.wait(20))  # as long as work that has just begun
        elif not finished.is_set():
            assert started.wait(20)
            if within == "run":
                cache_blocking.run_blocks(note, 8, cache_blocking.SMALL)
            else:
                cache_blocking.parallel_for(note, [(k,) for k in range(8)])
            finished.set()

    if outside == "run":
        cache_blocking.run_blocks(body, 4, cache_blocking.SMALL)
    else:
        cache_blocking.parallel_for(body, [(k,) for k in range(4)])
    assert waited and all(waited)
    assert inner and set(inner) == {main}
    assert not getattr(cache_blocking._local, "is_worker", False)


@pytest.mark.parametrize("how", ["run", "share"])
def test_threads_that_do_not_wake_are_not_waited_for(monkeypatch, how):
    monkeypatch.setattr(thread_count, "_count", 2)
    count = max(1, cache_blocking._workers.count)
    begun, hold = threading.Barrier(count + 1), threading.Event()
    busy = cache_blocking._workers.submit(lambda: (begun.wait(20), hold.wait(20)), count)
    begun.wait(20)  # every worker is at work, and stays so
    seen = []
    try:
        if how == "run":
            cache_blocking.run_blocks(
                lambda start, stop: seen.append(threading.current_thread()), 8, cache_blocking.SMALL
            )
        else:
            cache_blocking.parallel_for(lambda k: seen.append(threading.current_thread()), [(k,) for k in range(8)])
        assert not hold.is_set()
    finally:
        hold.set()
        busy.close()
    assert set(seen) == {threading.current_thread()}


def test_errors_of_workers_are_raised_in_the_waiting_thread(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)
    main, other = threading.current_thread(), threading.Event()

    def body(k):
        if threading.current_thread() is main:
            assert other.wait(20)
        else:
            other.set()
            raise KeyError(k)

    with pytest.raises(KeyError):
        cache_blocking.parallel_for(body, [(k,) for k in range(4)])
    done = []
    cache_blocking.parallel_for(done.append, [(k,) for k in range(4)])  # and the threads go on working
    assert sorted(done) == [0, 1, 2, 3]


def test_small_work_stays_on_one_thread(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)
    submitted, submit = [], cache_blocking._workers.submit
    monkeypatch.setattr(cache_blocking._workers, "submit", lambda *task: submitted.append(task) or submit(*task))
    done = []
    for rows, worth in (
        (1024, 1 << 20),
        (2048, 1 << 20),
        (128, cache_blocking.MIN_SIZE),
        (129, cache_blocking.MIN_SIZE),
    ):
        before, done[:] = len(submitted), []
        cache_blocking.run_blocks(lambda start, stop: done.extend(range(start, stop)), rows, 1024, 1 << 16, worth)
        assert sorted(done) == list(range(rows))
        assert len(submitted) - before == (rows * 1024 > worth)


def test_blocks_that_run_alone_have_blas_to_themselves(monkeypatch):
    entered = []
    cache_blocking.run_blocks(
        lambda start, stop: entered.append(bool(cache_blocking.single_threaded._entered)), 2, cache_blocking.SMALL
    )
    assert len(entered) == 2 and all(entered)


@pytest.mark.parametrize("count", [512, 513, 1035, 65535, 65536, 65537])
def test_relu_of_any_size_gives_the_same_zeros_and_nan(count):
    x = np.random.default_rng(count).standard_normal(2 * count).astype(np.float32)
    x[::7], x[1::7], x[2::7], x[3::11], x[4::11] = -0.0, 0.0, np.nan, np.inf, -np.inf
    for given in (x[:count], x[:count].reshape(-1, 3).T if count % 3 == 0 else x[1 : count + 1], x[::2]):
        result, want = relu(given), np.maximum(np.float32(0), given)
        assert result.shape == want.shape and result.tobytes() == want.tobytes()
