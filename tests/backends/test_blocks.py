"""Work shared among the NumPy backend's threads."""

import threading

import pytest

from torchlite._settings import threads
from torchlite_numpy import blocks


@pytest.mark.parametrize("within", ["run", "share"])
@pytest.mark.parametrize("outside", ["run", "share"])
def test_work_shared_within_shared_work_waits_for_nobody(monkeypatch, outside, within):
    monkeypatch.setattr(threads, "_count", 2)
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
                blocks.run(note, 8, blocks.SMALL)
            else:
                blocks.share(note, [(k,) for k in range(8)])
            finished.set()

    if outside == "run":
        blocks.run(body, 4, blocks.SMALL)
    else:
        blocks.share(body, [(k,) for k in range(4)])
    assert waited and all(waited)
    assert inner and set(inner) == {main}
    assert not getattr(blocks._local, "is_worker", False)
