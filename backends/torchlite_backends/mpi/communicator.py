"""MPI communicator: collectives and point-to-point messages of a group of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from .collective_fingerprint import (
    HEADER_BYTES,
    MAX_INLINE_BYTES,
    CollectiveMismatch,
    Header,
    InlineData,
    Steps,
    format_header,
    make_header,
)
from .collective_queue import CollectiveQueue
from .reduce_ops import get_mpi_type_and_op
from .requests import EAGER_POLLS, ReceiveRequest, Request, choose_spin_polls, poll_until_complete

_HEADERS = 64  # cached per call, one for each size


def _call_label(what: str, array: np.ndarray) -> str:
    return what or str(array.dtype)


def _make_header(call: str, how: Any, what: str, array: np.ndarray, size: Any) -> bytes:
    return make_header(call, how, _call_label(what, array), f"{size} bytes" if isinstance(size, int) else size)


def _as_mpi_bytes(array: np.ndarray) -> list[Any]:
    """Return memory as MPI bytes, whatever its dtype."""
    return [array, MPI.BYTE]


def _copy_if_overlapping(array: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the array, copied if it overlaps `other`: MPI requires disjoint buffers."""
    return array.copy() if np.may_share_memory(array, other) else array


class Communicator:
    """Ranks 0 to `size - 1`, of which this process is `rank`.

    Arrays are contiguous, in host memory, and of the same dtype and size on all ranks unless documented otherwise. A
    method that returns a Request reads and writes them until it is done. Every member calls the same collectives in the
    same order, otherwise all get an error, or wait. `what` describes the elements beyond the array's dtype; all ranks
    pass the same.
    """

    def __init__(self, comm: MPI.Comm, ranks: Sequence[int]) -> None:
        self._comm = comm
        self._ranks = list(ranks)  # of the world
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._line = CollectiveQueue(comm.Dup())
        self._barrier = Header(make_header("barrier", None, "nothing", 0), self.size)
        self._kept: dict[tuple[Any, ...], Callable[[np.ndarray], Header]] = {}
        for each in (comm, self._line.comm, self._line.near):
            if each is not None:
                each.Set_errhandler(MPI.ERRORS_RETURN)

    # Collectives. `op` is SUM, PRODUCT, MIN, MAX, BAND, BOR or BXOR.

    def all_reduce(self, array: np.ndarray, op: str, what: str = "") -> Request:
        """Reduce over all ranks into every rank's array."""
        return self._run_collective("all_reduce", op, what, array, None)

    def reduce(self, array: np.ndarray, op: str, root: int, what: str = "") -> Request:
        """Reduce over all ranks into the root's array; the others are unchanged."""
        datatype, how = get_mpi_type_and_op(array.dtype, op)
        mine = self.rank == root

        def start_reduce() -> MPI.Request:
            buffer = [array, datatype]
            return self._comm.Ireduce(MPI.IN_PLACE if mine else buffer, buffer if mine else None, how, root)

        head = _make_header("reduce", f"{op}, root {root}", what, array, array.nbytes)
        return self._line.begin(head, start_reduce, (array,), array.nbytes)

    def reduce_scatter(
        self, out: np.ndarray, array: np.ndarray, op: str, counts: Sequence[int], what: str = ""
    ) -> Request:
        """Reduce over all ranks; `out` gets this rank's part. Rank r's part has `counts[r]` elements."""
        array = _copy_if_overlapping(array, out)
        if len(set(counts)) == 1:
            return self._run_collective("reduce_scatter", op, what, out, array)
        datatype, how = get_mpi_type_and_op(array.dtype, op)

        def start_reduce_scatter() -> MPI.Request:
            return self._comm.Ireduce_scatter([array, datatype], [out, datatype], list(counts), how)

        head = _make_header("reduce_scatter", op, what, array, f"parts of {list(counts)}")
        return self._line.begin(head, start_reduce_scatter, (array, out), array.nbytes)

    def broadcast(self, array: np.ndarray, root: int, what: str = "") -> Request:
        """Copy the root's array to every rank."""
        return self._run_collective("broadcast", root, what, array, None)

    def all_gather(self, out: np.ndarray, array: np.ndarray, what: str = "") -> Request:
        """Concatenate the arrays of all ranks in `out`."""
        return self._run_collective("all_gather", None, what, out, _copy_if_overlapping(array, out))

    def gather(self, out: np.ndarray | None, array: np.ndarray, root: int, what: str = "") -> Request:
        """Concatenate the arrays of all ranks in the root's `out`; others pass None."""

        def start_gather() -> MPI.Request:
            return self._comm.Igather(_as_mpi_bytes(array), None if out is None else _as_mpi_bytes(out), root)

        head = _make_header("gather", f"root {root}", what, array, array.nbytes)
        return self._line.begin(head, start_gather, (array, out), array.nbytes)

    def scatter(self, out: np.ndarray, array: np.ndarray | None, root: int, what: str = "") -> Request:
        """Split the root's array over the ranks' `out`; the others pass None for `array`."""

        def start_scatter() -> MPI.Request:
            return self._comm.Iscatter(None if array is None else _as_mpi_bytes(array), _as_mpi_bytes(out), root)

        head = _make_header("scatter", f"root {root}", what, out, out.nbytes)
        return self._line.begin(head, start_scatter, (array, out), out.nbytes)

    def all_to_all(
        self, out: np.ndarray, array: np.ndarray, out_counts: Sequence[int], counts: Sequence[int], what: str = ""
    ) -> Request:
        """Send part r of the array, `counts[r]` elements, to rank r; `out` gets `out_counts[r]` from rank r."""
        array = _copy_if_overlapping(array, out)
        if len({*counts, *out_counts}) == 1:
            return self._run_collective("all_to_all", None, what, out, array)
        head = _make_header("all_to_all", None, what, array, "parts of several sizes")
        steps = self._exchange_unequal_parts(head, out, array, out_counts, counts)
        return self._line.begin(head, None, (array, out), array.nbytes + out.nbytes, steps)

    def _exchange_unequal_parts(
        self, head: bytes, out: np.ndarray, array: np.ndarray, out_counts: Sequence[int], counts: Sequence[int]
    ) -> Callable[[list[bytes]], Steps]:
        """Exchange parts of different sizes, after comparing the sizes."""

        def steps(everyone: list[bytes]) -> Steps:
            self._line.check(everyone, head, head.index(b","))  # sizes may differ
            mine = np.array([*counts, *out_counts], np.int64)
            sizes = np.empty((self.size, 2, self.size), np.int64)
            yield self._comm.Iallgather(_as_mpi_bytes(mine), _as_mpi_bytes(sizes))
            wrong = np.argwhere(sizes[:, 0] != sizes[:, 1].T)
            if len(wrong):
                source, to = wrong[0]
                raise CollectiveMismatch(
                    f"Detected mismatch between collectives on ranks. In all_to_all, Rank {source} sends "
                    f"{sizes[source, 0, to]} elements to Rank {to}, which expects {sizes[to, 1, source]}. "
                    "No data was sent."
                )
            return self._comm.Ialltoallv(
                _part_sizes_and_offsets(array, counts), _part_sizes_and_offsets(out, out_counts)
            )

        return steps

    def barrier(self) -> Request:
        """Wait until every rank has called it."""
        return self._line.begin(self._barrier, lambda: None, ())  # the headers are all

    def _run_collective(self, call: str, how: Any, what: str, out: np.ndarray, array: np.ndarray | None) -> Request:
        start, key = self._make_starter(call, out.dtype, how), (call, how, what, out.dtype)
        heads = self._kept.get(key)
        if heads is None:
            if len(self._kept) >= _HEADERS:
                self._kept.clear()
            heads = self._kept[key] = self._make_header_cache(call, how, what)
        head, begin = heads(out), lambda: start(out, array)
        return self._line.begin(
            head, begin, (out, array), out.nbytes, self._make_mismatch_handler(call, head.text, out, array)
        )

    def _make_mismatch_handler(
        self, call: str, head: bytes, out: np.ndarray, array: np.ndarray | None
    ) -> Callable[[list[bytes]], Steps] | None:
        """Return the continuation for different headers: an exchange may have several sizes on the other ranks."""
        if call != "all_to_all" or array is None:
            return None
        counts = [array.size // self.size] * self.size
        return self._exchange_unequal_parts(head, out, array, counts, counts)

    # Point-to-point. Messages of two ranks with the same tag arrive in the order in which they were sent.

    # A header goes before each, in its order, on the communicator of the headers.

    def send(self, array: np.ndarray, to: int, tag: int, what: str = "") -> Request:
        """Send; done when the array may be changed again."""
        request = self._send_with_header(array, to, tag, self._message_header(what, array))
        return Request(request, (array,), array.nbytes)

    def receive(self, array: np.ndarray, source: int | None, tag: int, what: str = "") -> Request:
        """Receive a message of this size from a rank, or from any: the request's `source` is the sender."""
        head, room = self._message_header(what, array), np.empty(HEADER_BYTES, np.uint8)
        words = self._line.comm.Irecv(_as_mpi_bytes(room), MPI.ANY_SOURCE if source is None else source, tag)
        data = None if source is None else self._comm.Irecv(_as_mpi_bytes(array), source, tag)
        return self._receive_with_header(words, data, head, room, array, source, tag)

    def _message_header(self, what: str, array: np.ndarray) -> Header:
        return Header(_make_header("message", None, what, array, array.nbytes), 1)

    def _send_with_header(self, array: np.ndarray, to: int, tag: int, head: Header) -> MPI.Request:
        words = self._line.comm.Isend(head.given, to, tag)
        request = self._comm.Isend([array, MPI.BYTE], to, tag)
        if not words.Test():
            Request(words, (head,))
        return request

    def _receive_with_header(
        self,
        words: MPI.Request,
        data: MPI.Request | None,
        head: Header,
        room: np.ndarray,
        array: np.ndarray,
        source: int | None,
        tag: int,
    ) -> ReceiveRequest:
        def check_header(source: int) -> None:
            if (text := room.tobytes()) != head.text:
                raise CollectiveMismatch(
                    f"Detected mismatch between messages. Rank {source} sent a {format_header(text)}, but "
                    f"Rank {self.rank} expects a {format_header(head.text)}"
                )

        begin = lambda sender: self._comm.Irecv(_as_mpi_bytes(array), sender, tag)
        return ReceiveRequest(words, begin, data, source, (array, room), array.nbytes, check_header)

    # Prepared calls.

    def prepared(self, call: str, dtype: np.dtype, how: Any, what: str = "") -> Callable[..., Request | None]:
        """Return a function that runs a call on (written array, read array), None for an absent one.

        It returns None if all is done, else a request. `how` is the operation, the root, or rank and tag.
        """
        if call not in ("send", "receive"):
            return self._collective(call, how, what, self._make_starter(call, dtype, how))
        (other, tag), greedy, comm, headers = how, choose_spin_polls(self.size), self._comm, self._line.comm
        heads = self._make_header_cache(call, None, what)

        def send(_: Any, array: Any) -> Request | None:
            request = self._send_with_header(array, other, tag, heads(array))
            try:
                if poll_until_complete(request.Test, EAGER_POLLS, greedy):
                    return None
            except BaseException:  # MPI has the memory still
                Request(request, (array,))
                raise
            return Request(request, (array,), array.nbytes)

        def receive(out: Any, _: Any) -> Request | None:
            head, room = heads(out), np.empty(HEADER_BYTES, np.uint8)
            words = headers.Irecv([room, MPI.BYTE], other, tag)
            data = comm.Irecv([out, MPI.BYTE], other, tag)
            try:
                arrived = poll_until_complete(words.Test, EAGER_POLLS, greedy) and room.tobytes() == head.text
                if arrived and poll_until_complete(data.Test, EAGER_POLLS, greedy):
                    return None
            except BaseException:  # MPI has the memory still
                self._receive_with_header(words, data, head, room, out, other, tag)
                raise
            return self._receive_with_header(words, data, head, room, out, other, tag)

        return send if call == "send" else receive

    def _make_header_cache(
        self, call: str, how: Any, what: str, kept: dict[int, Header] | None = None
    ) -> Callable[[np.ndarray], Header]:
        """Return the cached headers of a call, by the size that it writes or sends."""
        kept = {} if kept is None else kept
        call, copies = ("message", 1) if call in ("send", "receive") else (call, self.size)

        def find_header(array: np.ndarray) -> Header:
            nbytes = array.nbytes
            try:
                return kept[nbytes]
            except KeyError:
                if len(kept) >= _HEADERS:
                    kept.clear()
                text = _make_header(call, how, what, array, nbytes)
                made = kept[nbytes] = Header(text, copies, self._append_small_data(call, how, array.dtype, nbytes))
                return made

        return find_header

    def _append_small_data(self, call: str, how: Any, dtype: np.dtype, nbytes: int) -> InlineData | None:
        """Return how a collective's data is appended to its header; None if it is too large."""
        size, rank = self.size, self.rank
        if self._line.near is None or not nbytes or nbytes > MAX_INLINE_BYTES * (size if call == "all_gather" else 1):
            return None
        match call:
            case "all_reduce":
                datatype, op = get_mpi_type_and_op(dtype, how)

                def reduce_parts(parts: list[Any]) -> Callable[[np.ndarray], None]:
                    reduce, copy, last = op.Reduce_local, np.copyto, parts[-1]
                    into, given = [last, datatype], [[part, datatype] for part in parts[-2::-1]]

                    def finish(out: np.ndarray) -> None:
                        for part in given:  # in the same order on all ranks
                            reduce(part, into)
                        copy(out, last)

                    return finish

                return InlineData(nbytes, dtype, True, reduce_parts)
            case "broadcast":
                copies = lambda parts: lambda out: None if rank == how else np.copyto(out, parts[how])
                return InlineData(nbytes, dtype, rank == how, copies)
            case "all_gather":

                def concatenate_parts(parts: list[Any]) -> Callable[[np.ndarray], Any]:
                    return lambda out: np.concatenate(parts, out=out)

                return InlineData(nbytes // size, dtype, True, concatenate_parts)
        return None

    def _collective(self, call: str, how: Any, what: str, start: Any) -> Callable[..., Request | None]:
        kept: dict[int, Header] = {}
        heads, run_blocking = self._make_header_cache(call, how, what, kept), self._line.run_blocking

        def run(out: Any, array: Any) -> Request | None:
            head = kept.get(out.nbytes) or heads(out)
            differing = self._make_mismatch_handler(call, head.text, out, array) if call == "all_to_all" else None
            return run_blocking(head, start, out, array, differing)

        return run

    def _make_starter(self, call: str, dtype: np.dtype, how: Any) -> Callable[[Any, Any], MPI.Request]:
        """Return the function that starts a collective on the written and the read array."""
        comm, inplace, byte, size = self._comm, MPI.IN_PLACE, MPI.BYTE, self.size
        match call:
            case "all_reduce":
                datatype, op = get_mpi_type_and_op(dtype, how)
                return lambda out, _: comm.Iallreduce(inplace, [out, datatype], op)
            case "reduce_scatter":
                datatype, op = get_mpi_type_and_op(dtype, how)
                return lambda out, array: comm.Ireduce_scatter_block([array, datatype], [out, datatype], op)
            case "broadcast":
                return lambda out, _: comm.Ibcast([out, byte], how)
            case "all_gather":
                return lambda out, array: comm.Iallgather([array, byte], [out, byte])
            case "all_to_all":
                return lambda out, array: comm.Ialltoallv(_equal_part_sizes(array, size), _equal_part_sizes(out, size))
        raise ValueError(call)

    # Groups.

    def members(self) -> list[int]:
        """Return the world ranks in this group's order."""
        return list(self._ranks)

    def free(self) -> None:
        """Free the group."""
        if not MPI.Is_finalized():
            self._line.free()
            self._comm.Free()


def _equal_part_sizes(array: np.ndarray, ranks: int) -> list[Any]:
    size = array.nbytes // ranks
    return [array, ([size] * ranks, [size * i for i in range(ranks)]), MPI.BYTE]


def _part_sizes_and_offsets(array: np.ndarray, counts: Sequence[int]) -> list[Any]:
    sizes = [count * array.itemsize for count in counts]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [array, (sizes, starts), MPI.BYTE]
