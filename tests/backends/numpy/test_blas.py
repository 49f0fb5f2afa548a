"""BLAS on one thread while our own threads call it."""

import threading

import pytest

from torchlite_backends.numpy import blas


def test_nobody_is_inside_before_blas_has_one_thread(monkeypatch):
    """The second thread waits while the first one tells BLAS."""
    count, inside = [4], []
    single_threaded = blas._SingleThreaded()

    def enter():
        with single_threaded:
            inside.append(count[0])

    second = threading.Thread(target=enter)

    def set_count(n):
        if n == 1:
            second.start()
            second.join(0.05)
        count[0] = n

    monkeypatch.setattr(blas, "_find_thread_controls", lambda: (set_count, lambda: count[0]))
    with single_threaded:
        assert count == [1]
        second.join()
        assert count == [1]
    assert inside == [1] and count == [4]


def test_the_last_one_restores_the_count(monkeypatch):
    count, leave = [4], threading.Event()
    single_threaded = blas._SingleThreaded()
    monkeypatch.setattr(blas, "_find_thread_controls", lambda: (lambda n: count.__setitem__(0, n), lambda: count[0]))

    def stay():
        with single_threaded:
            leave.wait()

    other = threading.Thread(target=stay)
    with single_threaded, single_threaded:
        other.start()
        while len(single_threaded._entered) < 2:
            other.join(0.001)
    assert count == [1]
    leave.set()
    other.join()
    assert count == [4]


def test_a_product_of_one_thread_restores_the_count(monkeypatch):
    count, seen = [4], []
    single_threaded = blas._SingleThreaded()
    monkeypatch.setattr(blas, "_find_thread_controls", lambda: (lambda n: count.__setitem__(0, n), lambda: count[0]))

    class Row:
        def dot(self, other):
            seen.append((count[0], len(single_threaded._entered)))
            if other is None:
                raise TypeError("no matrix")
            return other

    with single_threaded:  # which looks for room for BLAS's buffers
        assert single_threaded.dot(Row(), 1) == 1
    assert single_threaded.dot(Row(), 2) == 2 and count == [4]
    with pytest.raises(TypeError, match="no matrix"):
        single_threaded.dot(Row(), None)
    assert count == [4] and not single_threaded._entered and seen == [(1, 1)] * 3


def test_the_count_is_the_library_s():
    controls = blas._find_thread_controls()
    if controls is None:
        pytest.skip("this NumPy's BLAS cannot be told")
    told = next(
        getattr(controls[2], name.format("get")) for name in blas._NAMES if hasattr(controls[2], name.format("get"))
    )
    before = controls[1]()
    for n in (1, before):
        controls[0](n)
        assert controls[1]() == told() == n
