"""A library in the place of `cupy.cuda.nccl`: ranks are threads, memory of the device is the host's, and each call is
noted with CuPy's parameters.
"""

from __future__ import annotations

import ctypes
import itertools
import queue
import threading

import numpy as np

DTYPES = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}
REDUCE = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}


class Room:
    """The ranks that know one identity."""

    def __init__(self, size):
        self.size, self.barrier, self.slots = size, threading.Barrier(size, timeout=20), [None] * size
        pairs = itertools.product(range(size), repeat=2)
        self.mail = {pair: queue.Queue() for pair in pairs}

    def exchange(self, rank, value):
        self.slots[rank] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class NcclError(RuntimeError):
    def __init__(self, status):
        super().__init__(f"NCCL_ERROR: {status}")
        self.status = status


class Library:
    """The module, of CuPy 14 or of the one before it, in which a group's identity is a tuple of signed numbers."""

    available = True

    def __init__(self, cupy=14):
        self.cupy = cupy
        self.calls, self.rooms, self.error = [], {}, 0
        self._count, self._lock, self._thread = 0, threading.Lock(), threading.local()
        library = self

        class NcclCommunicator(Communicator):
            def __init__(self, ndev: int, commId: bytes | tuple, rank: int):
                if type(commId) is not library.identity:
                    raise TypeError(f"Argument 'commId' has incorrect type ({type(commId).__name__})")
                super().__init__(library, ndev, commId, rank)

        self.NcclCommunicator = NcclCommunicator

    def get_version(self):
        return 22804

    @property
    def identity(self):
        return bytes if self.cupy >= 14 else tuple

    def get_unique_id(self):
        with self._lock:
            self._count += 1
            signed = [self._count % 128, -7] + [0] * 126
            return self.identity(signed if self.identity is tuple else [number % 256 for number in signed])

    def groupStart(self):
        assert getattr(self._thread, "held", None) is None
        self._thread.held = []

    def groupEnd(self):
        held, self._thread.held = self._thread.held, None
        self.calls.append(("group", len(held)))
        for call in sorted(held, key=lambda call: call.first, reverse=True):
            call()

    def begin(self, call, first=False):
        if self.error:
            raise KeyError(self.error) if self.error > 5 else NcclError(self.error)
        call.first = first
        if getattr(self._thread, "held", None) is None:
            call()
        else:
            self._thread.held.append(call)


def memory(at, count, datatype):
    dtype = np.dtype(DTYPES[datatype])
    return np.frombuffer((ctypes.c_uint8 * (count * dtype.itemsize)).from_address(at), dtype)


class Communicator:
    def __init__(self, library, ndev, commId, rank):
        assert len(commId) == 128 and set(commId) <= set(range(256) if library.cupy >= 14 else range(-128, 128))
        self.library, self.rank, self.free = library, rank, False
        with library._lock:
            self.room = library.rooms.setdefault(commId, Room(ndev))
        assert self.room.size == ndev
        self.room.barrier.wait()

    def _note(self, *call):
        assert not self.free
        self.library.calls.append(call)

    def _reduced(self, sendbuf, count, datatype, op):
        every = self.room.exchange(self.rank, memory(sendbuf, count, datatype).copy())
        made = every[0]
        for other in every[1:]:
            made = REDUCE[op](made, other)
        return made

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        self._note("allReduce", count, datatype, op, stream)

        def call():
            memory(recvbuf, count, datatype)[...] = self._reduced(sendbuf, count, datatype, op)

        self.library.begin(call)

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        self._note("reduce", count, datatype, op, root, stream)

        def call():
            made = self._reduced(sendbuf, count, datatype, op)
            if self.rank == root:
                memory(recvbuf, count, datatype)[...] = made

        self.library.begin(call)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        self._note("broadcast", count, datatype, root, stream)

        def call():
            memory(recvbuff, count, datatype)[...] = self.room.exchange(
                self.rank, memory(sendbuff, count, datatype).copy()
            )[root]

        self.library.begin(call)

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        self._note("reduceScatter", recvcount, datatype, op, stream)

        def call():
            made = self._reduced(sendbuf, recvcount * self.room.size, datatype, op)
            memory(recvbuf, recvcount, datatype)[...] = made.reshape(self.room.size, -1)[self.rank]

        self.library.begin(call)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        self._note("allGather", count, datatype, stream)

        def call():
            every = self.room.exchange(self.rank, memory(sendbuf, count, datatype).copy())
            memory(recvbuf, count * self.room.size, datatype)[...] = np.concatenate(every)

        self.library.begin(call)

    def send(self, sendbuf, count, datatype, peer, stream):
        self._note("send", count, datatype, peer, stream)
        self.library.begin(
            lambda: self.room.mail[self.rank, peer].put(memory(sendbuf, count, datatype).copy()), first=True
        )

    def recv(self, recvbuf, count, datatype, peer, stream):
        self._note("recv", count, datatype, peer, stream)

        def call():
            found = self.room.mail[peer, self.rank].get(timeout=20)
            assert len(found) == count
            memory(recvbuf, count, datatype)[...] = found

        self.library.begin(call)

    def check_async_error(self):
        if self.library.error:
            raise NcclError(self.library.error)

    def destroy(self):
        self.free = True

    abort = destroy
