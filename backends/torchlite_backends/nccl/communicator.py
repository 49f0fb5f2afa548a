"""NCCL communicator: collectives and messages of GPUs, one per process. Calls are enqueued in a stream and return
immediately.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .constants import BYTES, ID_BYTES, describe_error, nccl_dtype_of, nccl_op_of


def _nbytes_of(array: Any) -> int:
    return array.numel() * array.element_size()


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate CuPy's errors to RuntimeError with NCCL's name of the failure."""
    try:
        yield
    except (RuntimeError, KeyError) as error:
        raise RuntimeError(describe_error(error)) from error


class Communicator:
    """Rank `rank` of `size`, whose members share the same `identity`.

    Arrays are contiguous memory of the device, with `data_ptr()`, `numel()`, `element_size()` and a `dtype`; `stream`
    is the address of a CUDA stream. Every member makes the same calls in the same order.
    """

    def __init__(self, nccl: Any, size: int, identity: bytes, rank: int) -> None:
        self._nccl, self.rank, self.size = nccl, rank, size
        with translate_errors():
            try:
                self._comm = nccl.NcclCommunicator(size, identity, rank)
            except TypeError:  # CuPy before 14 takes a tuple of C's `char`s, which are signed
                chars = tuple(b - 256 if b > 127 else b for b in identity)
                self._comm = nccl.NcclCommunicator(size, chars, rank)

    # Collectives: as in docs/backend.md, with a stream.

    def all_reduce(self, array: Any, op: str, stream: int) -> None:
        at, kind, how = array.data_ptr(), nccl_dtype_of(array), nccl_op_of(op)
        with translate_errors():
            self._comm.allReduce(at, at, array.numel(), kind, how, stream)

    def reduce(self, array: Any, op: str, root: int, stream: int) -> None:
        at, kind, how = array.data_ptr(), nccl_dtype_of(array), nccl_op_of(op)
        with translate_errors():
            self._comm.reduce(at, at, array.numel(), kind, how, root, stream)

    def reduce_scatter(self, out: Any, array: Any, op: str, counts: Sequence[int], stream: int) -> None:
        kind, how = nccl_dtype_of(array), nccl_op_of(op)
        if len(set(counts)) == 1:
            with translate_errors():
                self._comm.reduceScatter(array.data_ptr(), out.data_ptr(), counts[0], kind, how, stream)
            return

        def call_each() -> None:
            start = array.data_ptr()
            for root, count in enumerate(counts):
                self._comm.reduce(start, out.data_ptr(), count, kind, how, root, stream)
                start += count * array.element_size()

        self._run_grouped_calls(call_each)

    def broadcast(self, array: Any, root: int, stream: int) -> None:
        with translate_errors():
            self._comm.broadcast(array.data_ptr(), array.data_ptr(), _nbytes_of(array), BYTES, root, stream)

    def all_gather(self, out: Any, array: Any, stream: int) -> None:
        with translate_errors():
            self._comm.allGather(array.data_ptr(), out.data_ptr(), _nbytes_of(array), BYTES, stream)

    def gather(self, out: Any, array: Any, root: int, stream: int) -> None:
        def call_each() -> None:
            self._comm.send(array.data_ptr(), _nbytes_of(array), BYTES, root, stream)
            if out is not None:
                for peer in range(self.size):
                    self._comm.recv(out.data_ptr() + peer * _nbytes_of(array), _nbytes_of(array), BYTES, peer, stream)

        self._run_grouped_calls(call_each)

    def scatter(self, out: Any, array: Any, root: int, stream: int) -> None:
        def call_each() -> None:
            if array is not None:
                for peer in range(self.size):
                    self._comm.send(array.data_ptr() + peer * _nbytes_of(out), _nbytes_of(out), BYTES, peer, stream)
            self._comm.recv(out.data_ptr(), _nbytes_of(out), BYTES, root, stream)

        self._run_grouped_calls(call_each)

    def all_to_all(self, out: Any, array: Any, out_counts: Sequence[int], counts: Sequence[int], stream: int) -> None:
        def call_each() -> None:
            given, into, width = array.data_ptr(), out.data_ptr(), array.element_size()
            for peer in range(self.size):
                self._comm.send(given, counts[peer] * width, BYTES, peer, stream)
                self._comm.recv(into, out_counts[peer] * width, BYTES, peer, stream)
                given, into = given + counts[peer] * width, into + out_counts[peer] * width

        self._run_grouped_calls(call_each)

    def send(self, array: Any, to: int, stream: int) -> None:
        with translate_errors():
            self._comm.send(array.data_ptr(), _nbytes_of(array), BYTES, to, stream)

    def receive(self, array: Any, source: int, stream: int) -> None:
        with translate_errors():
            self._comm.recv(array.data_ptr(), _nbytes_of(array), BYTES, source, stream)

    def _run_grouped_calls(self, calls: Callable[[], None]) -> None:
        """Run calls in one NCCL group: separately, each would wait for another rank's."""
        with translate_errors():
            self._nccl.groupStart()
            try:
                calls()
            finally:
                self._nccl.groupEnd()

    def check(self) -> None:
        """Raise RuntimeError for an asynchronous error."""
        with translate_errors():
            self._comm.check_async_error()

    def abort(self) -> None:
        """Abort calls that wait for missing ranks."""
        self._comm.abort()

    def free(self) -> None:
        """Destroy the communicator."""
        self._comm.destroy()


def unique_id_to_bytes(identity: Sequence[int]) -> bytes:
    """Return CuPy's unique id as bytes; before CuPy 14 it is a tuple of signed numbers."""
    assert len(identity) == ID_BYTES
    return bytes(number % 256 for number in identity)
