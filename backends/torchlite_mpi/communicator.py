"""A group of processes, and what its members send each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from .reducing import reducing
from .requests import Receiving, Request


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
        array, datatype, how = reducing(array, op)
        request = self._comm.Iallreduce(MPI.IN_PLACE, [array, datatype], how)
        return Request(request, (array,), array.nbytes)

    def reduce(self, array: np.ndarray, op: str, root: int) -> Request:
        """The root's array becomes the reduction of all; the others' stay."""
        array, datatype, how = reducing(array, op)
        buffer = [array, datatype]
        mine = self.rank == root
        request = self._comm.Ireduce(MPI.IN_PLACE if mine else buffer, buffer if mine else None, how, root)
        return Request(request, (array,), array.nbytes)

    def reduce_scatter(self, out: np.ndarray, array: np.ndarray, op: str, counts: Sequence[int]) -> Request:
        """`out` becomes this rank's part of the reduction of all; rank r's part has `counts[r]` elements."""
        array = _apart(array, out)
        array, datatype, how = reducing(array, op)
        out = reducing(out, op)[0]
        given, into = [array, datatype], [out, datatype]
        if len(set(counts)) == 1:
            request = self._comm.Ireduce_scatter_block(given, into, how)
        else:
            request = self._comm.Ireduce_scatter(given, into, list(counts), how)
        return Request(request, (array, out), array.nbytes)

    def broadcast(self, array: np.ndarray, root: int) -> Request:
        """Every rank's array becomes the root's."""
        return Request(self._comm.Ibcast(_bytes(array), root), (array,), array.nbytes)

    def all_gather(self, out: np.ndarray, array: np.ndarray) -> Request:
        """`out` becomes the arrays of all, one after the other."""
        array = _apart(array, out)
        request = self._comm.Iallgather(_bytes(array), [out, MPI.BYTE])
        return Request(request, (array, out), out.nbytes)

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
        return Request(self._comm.Isend(_bytes(array), to, tag), (array,), array.nbytes)

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Request:
        """A message of this size from a rank, or from any: the request's `source` says from whom."""
        source = MPI.ANY_SOURCE if source is None else source
        return Receiving(self._comm.Irecv(_bytes(array), source, tag), (array,), array.nbytes)

    # Groups.

    def members(self) -> list[int]:
        """The ranks in the world, in this group's order."""
        return list(self._ranks)

    def free(self) -> None:
        """The group is not used any more."""
        if not MPI.Is_finalized():
            self._comm.Free()


def _parts(array: np.ndarray, counts: Sequence[int]) -> list[Any]:
    sizes = [count * array.itemsize for count in counts]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [array, (sizes, starts), MPI.BYTE]
