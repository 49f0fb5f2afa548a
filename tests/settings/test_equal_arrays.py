"""Equal constant arrays are kept once, for as long as something holds them."""

import gc
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from torchlite._settings.equal_arrays import share_equal


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "c8", ml_dtypes.bfloat16])
def test_equal_arrays_are_one(rng, dtype):
    first = rng.integers(0, 9, (70, 80)).astype(dtype)
    assert share_equal(first) is first and share_equal(first.copy()) is first
    changed = first.copy()
    changed[69, 79] += 1
    assert share_equal(changed) is changed


def test_bits_shapes_dtypes_and_kinds_count():
    zeros = np.zeros(2048, "f4")
    others = [-zeros, zeros.reshape(2, 1024), zeros.view("i4")]
    found = [share_equal(array.copy()) for array in (zeros, *others)]
    assert len({id(array) for array in found}) == 4
    assert share_equal(zeros.copy()) is found[0]
    assert share_equal(zeros.copy(), "panels") is not found[0]


def test_what_is_not_shared():
    class Other(np.ndarray):
        pass

    for make in (
        lambda: np.ones(1000, "f4"),
        lambda: np.ones((90, 80), "f4").T,
        lambda: np.full(5000, None, object),
        lambda: np.ones(5000).view(Other),
    ):
        first, second = make(), make()
        assert share_equal(first) is first and share_equal(second) is second
    assert share_equal(3.0) == 3.0


def test_different_arrays_with_one_checksum(monkeypatch):
    monkeypatch.setattr("zlib.crc32", lambda data: 7)
    first, second = np.full(2048, 1.25), np.full(2048, 2.25)
    assert share_equal(first) is first and share_equal(second) is second


def test_nothing_is_kept_alive():
    array = np.full(4096, 0.75)
    share_equal(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None
    again = np.full(4096, 0.75)
    assert share_equal(again) is again


def test_threads_get_one_array():
    arrays = [np.full(1 << 16, 0.375) for _ in range(8)]
    found = []
    threads = [threading.Thread(target=lambda array=array: found.append(share_equal(array))) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(array) for array in found}) == 1
