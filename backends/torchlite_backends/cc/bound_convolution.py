"""A convolution with constant weights, for images of one shape: its launches are planned once.

A call of `Convolutions.forward` chooses an algorithm and packs some forty parameters. Here a call writes the addresses
of its images and results into packed parameters. What depends on the weights alone is computed once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlite._settings.equal_arrays import share_equal
from torchlite_backends.numpy.cache_blocking import get_scratch_buffer

from .convolution import Convolutions, expand_to_int64s
from .device import address

_pack_word = struct.Struct("q").pack_into
# The entry that transforms weights, whose result is kept.
_OF_WEIGHTS = "filtering_weights"


class _Launch(NamedTuple):
    """Packed parameters of an entry. places: (byte, number of the array, bytes behind its beginning)."""

    name: str
    parts: int
    threads: bool
    given: bytes
    places: tuple[tuple[int, int, int], ...]


class _Planner(Convolutions):
    """Plans launches in place of running them. Array 0 are the images, 1 the results, others scratch memory."""

    def __init__(self, convolutions: Convolutions, x: np.ndarray) -> None:
        vars(self).update(vars(convolutions))
        self._run, self._x = convolutions, x
        self.scratch: list[tuple[int, np.ndarray]] = []
        self.launches: list[tuple] = []

    def _scratch(self, slot: int, size: int) -> np.ndarray:
        made = np.empty(size, np.float32)
        self.scratch.append((slot, made))
        return made

    def _launch(self, name: str, parts: int, threads: bool, *values: Any) -> None:
        self.launches.append((name, parts, threads, values))

    def _replace(self, array: np.ndarray, other: np.ndarray) -> None:
        """Put an array in place of another among the parameters of all launches."""
        for at, (name, parts, threads, values) in enumerate(self.launches):
            self.launches[at] = name, parts, threads, tuple([other if v is array else v for v in values])

    def finish(self, out: np.ndarray, otherwise: Callable) -> BoundConvolution:
        """Return the planned convolution."""
        if self.launches[0][0] == _OF_WEIGHTS:  # writes the transformed weights, which stay
            name, parts, threads, values = self.launches.pop(0)
            self._run._launch(name, parts, threads, *values)
            ((_, domain),) = self.scratch
            self._replace(domain, share_equal(domain))
            self.scratch.clear()
        arrays = [self._x, out, *[memory for _, memory in self.scratch]]
        ranges = [(address(array), array.nbytes) for array in arrays]
        made, held = [], []
        for name, parts, threads, values in self.launches:
            words = [word for value in values for word in expand_to_int64s(value)]
            of_arrays = {address(v) for v in values if v.__class__ is np.ndarray}
            held.append([v for v in values if v.__class__ is not np.ndarray or not _lies_in(v, ranges)])
            places = [
                (8 * at, number, word - begin)
                for at, word in enumerate(words)
                if word in of_arrays
                for number, (begin, size) in enumerate(ranges)
                if begin <= word < begin + size
            ]
            made.append(_Launch(name, parts, threads, struct.pack(f"{len(words)}q", *words), tuple(places)))
        sizes = [(slot, memory.size) for slot, memory in self.scratch]
        return BoundConvolution(self._run, made, out.shape, sizes, held, otherwise)


def _lies_in(array: np.ndarray, ranges: list[tuple[int, int]]) -> bool:
    return any(begin <= address(array) < begin + size for begin, size in ranges)


class BoundConvolution:
    """The function of row-major float32 images.

    held: keeps the constant memory alive that the parameters point to. otherwise: for images that a launch refuses.
    """

    def __init__(
        self, convolutions: Convolutions, launches: list[_Launch], shape: tuple, scratch: list, held: list,
        otherwise: Callable,
    ) -> None:  # fmt: skip
        self._start, self._launches, self._shape = convolutions._start, launches, shape
        self._scratch, self._held, self._otherwise = scratch, held, otherwise

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(x)
        out = np.empty(self._shape, np.float32)
        memory = [get_scratch_buffer(slot, (size,), np.float32) for slot, size in self._scratch]
        arrays = [address(x), address(out), *map(address, memory)]
        for name, parts, threads, given, places in self._launches:
            packed = bytearray(given)
            for at, number, behind in places:
                _pack_word(packed, at, arrays[number] + behind)
            try:
                self._start(name, parts, threads, bytes(packed))
            except MemoryError:  # Winograd's filtering, of values that are not finite
                return self._otherwise(x)
        return out


def bind_forward(
    convolutions: Convolutions, plan: Any, weight: np.ndarray, bias: np.ndarray | None, finish: Any
) -> BoundConvolution | None:
    """Return `convolutions.forward` with constant weights, None where it is not faster than NumPy."""
    x = np.empty((plan.batch, plan.channels, *plan.size), np.float32)
    planner = _Planner(convolutions, x)
    out = planner.forward(plan, x, weight, bias, finish)
    if out is None:
        return None
    return planner.finish(out, lambda x: convolutions.forward(plan, x, weight, bias, finish))
