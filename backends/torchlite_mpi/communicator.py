"""A group of processes, and what its members send each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from .reducing import reducing
from .requests import EAGER, Receiving, Request, greed, moved


def _bytes(array: np.ndarray) -> list[Any]:
    """Memory as MPI moves it, whatever its elements are."""
    return [array, MPI.BYTE]


def _apart(array: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The array, copied where the other has memory of it: MPI reads and writes different memory."""
    return array.copy() if np.may_share_memory(array, other) else array


class Communicator:
    """Ranks 0 to `size - 1`, of which this process is `rank`. Arrays are contiguous, in host memory, and of the same
    dtype and size on all ranks where nothing else is said; what returns a Request reads and writes them until it is
    done. Every member calls the same collectives in the same order.
    """

    def __init__(self, comm: MPI.Comm, ranks: Sequence[int]) -> None:
        self._comm = comm
        self._ranks = list(ranks)  # of the world
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    # Collectives. `op` is SUM, PRODUCT, MIN, MAX, BAND, BOR or BXOR.

    def all_reduce(self, array: np.ndarray, op: str) -> Request:
        """Every rank's array becomes the reduction of all."""
        return Request(self._starting("all_reduce", array.dtype, op)(array, None), (array,), array.nbytes)

    def reduce(self, array: np.ndarray, op: str, root: int) -> Request:
        """The root's array becomes the reduction of all; the others' stay."""
        datatype, how = reducing(array.dtype, op)
        buffer = [array, datatype]
        mine = self.rank == root
        request = self._comm.Ireduce(MPI.IN_PLACE if mine else buffer, buffer if mine else None, how, root)
        return Request(request, (array,), array.nbytes)

    def reduce_scatter(self, out: np.ndarray, array: np.ndarray, op: str, counts: Sequence[int]) -> Request:
        """`out` becomes this rank's part of the reduction of all; rank r's part has `counts[r]` elements."""
        array = _apart(array, out)
        if len(set(counts)) == 1:
            request = self._starting("reduce_scatter", array.dtype, op)(out, array)
        else:
            datatype, how = reducing(array.dtype, op)
            request = self._comm.Ireduce_scatter([array, datatype], [out, datatype], list(counts), how)
        return Request(request, (array, out), array.nbytes)

    def broadcast(self, array: np.ndarray, root: int) -> Request:
        """Every rank's array becomes the root's."""
        return Request(self._starting("broadcast", array.dtype, root)(array, None), (array,), array.nbytes)

    def all_gather(self, out: np.ndarray, array: np.ndarray) -> Request:
        """`out` becomes the arrays of all, one after the other."""
        array = _apart(array, out)
        return Request(self._starting("all_gather", array.dtype, None)(out, array), (array, out), out.nbytes)

    def gather(self, out: np.ndarray | None, array: np.ndarray, root: int) -> Request:
        """The root's `out` becomes the arrays of all, one after the other; others give None."""
        into = None if out is None else [out, MPI.BYTE]
        return Request(self._comm.Igather(_bytes(array), into, root), (array, out), array.nbytes)

    def scatter(self, out: np.ndarray, array: np.ndarray | None, root: int) -> Request:
        """`out` becomes this rank's part of the root's array; others give None."""
        given = None if array is None else [array, MPI.BYTE]
        return Request(self._comm.Iscatter(given, _bytes(out), root), (array, out), out.nbytes)

    def all_to_all(
        self, out: np.ndarray, array: np.ndarray, out_counts: Sequence[int], counts: Sequence[int]
    ) -> Request:
        """Part r of the array goes to rank r: `counts[r]` elements; `out` gets `out_counts[r]` from rank r."""
        array = _apart(array, out)
        request = self._comm.Ialltoallv(_parts(array, counts), _parts(out, out_counts))
        return Request(request, (array, out), array.nbytes + out.nbytes)

    def barrier(self) -> Request:
        """Done when every rank has called it."""
        return Request(self._comm.Ibarrier(), ())

    # From one rank to another. Messages of two ranks with the same tag arrive in the order in which they were sent.

    def send(self, array: np.ndarray, to: int, tag: int) -> Request:
        """Done when the array may be changed again."""
        request = self._starting("send", array.dtype, (to, tag))(None, array)
        return Request(request, (array,), array.nbytes)

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Request:
        """A message of this size from a rank, or from any: the request's `source` says from whom."""
        source = MPI.ANY_SOURCE if source is None else source
        return Receiving(self._comm.Irecv(_bytes(array), source, tag), (array,), array.nbytes)

    # Calls at once.

    def prepared(self, call: str, dtype: np.dtype, how: Any) -> Callable[..., Request | None]:
        """A function that does a call with the arrays which it is given: one to be written and one to be read, None
        where a call has no such. It returns None when all is done, and a request where that takes longer. `how` is the
        operation, the root, or rank and tag.
        """
        start, greedy = self._starting(call, dtype, how), greed(self.size)

        def run(out: Any, array: Any) -> Request | None:
            request = start(out, array)
            try:
                if moved(request.Test, EAGER, greedy):
                    return None
            except BaseException:  # MPI has the memory still
                Request(request, (out, array))
                raise
            return Request(request, (out, array), (array if out is None else out).nbytes)

        return run

    def _starting(self, call: str, dtype: np.dtype, how: Any) -> Callable[[Any, Any], MPI.Request]:
        """What begins a call: a function of the array that is written and the one that is read."""
        comm, inplace, byte, size = self._comm, MPI.IN_PLACE, MPI.BYTE, self.size
        match call:
            case "all_reduce":
                datatype, op = reducing(dtype, how)
                return lambda out, _: comm.Iallreduce(inplace, [out, datatype], op)
            case "reduce_scatter":
                datatype, op = reducing(dtype, how)
                return lambda out, array: comm.Ireduce_scatter_block([array, datatype], [out, datatype], op)
            case "broadcast":
                return lambda out, _: comm.Ibcast([out, byte], how)
            case "all_gather":
                return lambda out, array: comm.Iallgather([array, byte], [out, byte])
            case "all_to_all":
                return lambda out, array: comm.Ialltoallv(_equal(array, size), _equal(out, size))
            case "send":
                return lambda _, array: comm.Isend([array, byte], *how)
            case "receive":
                return lambda out, _: comm.Irecv([out, byte], *how)
        raise ValueError(call)

    # Groups.

    def members(self) -> list[int]:
        """The ranks in the world, in this group's order."""
        return list(self._ranks)

    def free(self) -> None:
        """The group is not used any more."""
        if not MPI.Is_finalized():
            self._comm.Free()


def _equal(array: np.ndarray, ranks: int) -> list[Any]:
    size = array.nbytes // ranks
    return [array, ([size] * ranks, [size * i for i in range(ranks)]), MPI.BYTE]


def _parts(array: np.ndarray, counts: Sequence[int]) -> list[Any]:
    sizes = [count * array.itemsize for count in counts]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [array, (sizes, starts), MPI.BYTE]
