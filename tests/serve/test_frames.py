"""Messages between the server's process and workers."""

import gc
import os
import socket

import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory are Linux's")

from torchlite.serve import _frames


@pytest.fixture
def channels():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("size", [0, 1, 1000, 8000, 8192, 9000, 1 << 20])
def test_arrays_arrive_as_they_were_and_can_be_written_to(channels, size):
    sent = {"x": np.arange(size, dtype=np.float32), "word": "w", "z": np.ones((3, 2))[:, ::-1]}
    _frames.send(channels[0], sent)
    found = _frames.receive(channels[1])
    assert found["word"] == "w" and (found["x"] == sent["x"]).all() and (found["z"] == sent["z"]).all()
    assert found["x"].flags.writeable and found["x"].ctypes.data % 16 == 0
    found["x"] += 1
    assert (sent["x"] == np.arange(size)).all()


@pytest.mark.parametrize("count", [1, 400, 3000])
def test_many_arrays(channels, count):
    _frames.send(channels[0], [np.full(5, number, np.int64) for number in range(count)])
    assert [int(array[4]) for array in _frames.receive(channels[1])] == list(range(count))


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array([b"a", b"\xff"], np.object_),
        np.array(3.0, np.float16),
        np.zeros((0, 4), np.uint8),
        np.array([True, False]),
    ],
)
def test_datatypes(channels, array):
    _frames.send(channels[0], array)
    found = _frames.receive(channels[1])
    assert found.dtype == array.dtype and found.shape == array.shape and found.tolist() == array.tolist()


def test_large_messages_leave_no_open_file(channels):
    before = open_files()
    for _ in range(20):
        _frames.send(channels[0], np.ones(1 << 16))
        found = _frames.receive(channels[1])
        assert found.sum() == 1 << 16
    unsent = _frames.Message(np.ones(1 << 16))
    unsent.close()
    del found
    gc.collect()
    assert open_files() == before


def test_the_end_of_the_other_side(channels):
    ours, theirs = channels
    _frames.send(ours, "last")
    with pytest.raises(BlockingIOError):
        _frames.receive(ours, socket.MSG_DONTWAIT)
    ours.close()
    assert _frames.receive(theirs) == "last"
    with pytest.raises(EOFError):
        _frames.receive(theirs)
    with pytest.raises(OSError):
        _frames.send(theirs, np.ones(1 << 16))
