"""Poisson samples in bulk, by NumPy's sampler over PyTorch's uniform stream.

The number of uniforms per sample depends on the draws, so samples cannot be vectorised. NumPy's legacy sampler, whose
stream is frozen, takes the same steps as PyTorch's (`poisson_binomial` has them in Python). Here it reads uniforms from
memory. NumPy's Philox generator hands out the words of a buffer, from the place `buffer_pos` on, before it generates
more. That place is a signed number, so a negative one lets it read the words in the memory before the buffer.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable

import numpy as np

from torchlite._settings import fork_locks

from .mt19937 import Engine
from .uniform_pieces import UniformPieces

MIN_COUNT = 64  # minimum samples for which this pays
LARGEST_RATE = 1e9
READ_AHEAD = 1 << 15  # uniforms in memory
_DEVIATIONS = 5  # of the number of uniforms that samples take: a call that takes more than are there is repeated


class _PhiloxState(ctypes.Structure):
    _fields_ = (
        ("counter", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("buffer_pos", ctypes.c_int),
        ("buffer", ctypes.c_uint64 * 4),
        ("has_uint32", ctypes.c_int),
        ("uinteger", ctypes.c_uint32),
    )


class Sampler:
    """NumPy's sampler, and the memory that it reads: `words`, whose upper 53 bits are a uniform each."""

    def __init__(self) -> None:
        philox = np.random.Philox(1)
        philox.random_raw()
        size = ctypes.sizeof(_PhiloxState)
        memory = np.zeros(READ_AHEAD + size // 8, np.uint64)
        self.words = memory[:READ_AHEAD]
        self._state = _PhiloxState.from_address(memory.ctypes.data + self.words.nbytes)
        self._begin = -(READ_AHEAD + _PhiloxState.buffer.offset // 8)
        ctypes.memmove(ctypes.addressof(self._state), philox.ctypes.state_address, size)
        known = philox.state
        self.is_known = (
            self._state.buffer_pos == known["buffer_pos"] and list(self._state.buffer) == known["buffer"].tolist()
        )
        # RandomState copies the structure that begins with the state's address.
        address = ctypes.c_void_p.from_address(ctypes.cast(philox.ctypes.bit_generator, ctypes.c_void_p).value or 0)
        self.is_known = self.is_known and address.value == philox.ctypes.state_address
        if self.is_known:
            address.value = ctypes.addressof(self._state)
            try:
                self.random = np.random.RandomState(philox)
            finally:
                address.value = philox.ctypes.state_address
        self._owners = philox, memory
        self._lock = fork_locks.acquire_before_fork(threading.RLock())  # NumPy's own is not reentrant in all versions

    def rewind(self) -> None:
        """Let NumPy read from the first word on."""
        self._state.buffer_pos = self._begin

    def used(self) -> int:
        """Return how many words were read since then; more than there are if they did not suffice."""
        return self._state.buffer_pos - self._begin

    def draw(self, rates: np.ndarray, engine: Engine) -> np.ndarray:
        """Return int64 samples of these rates (float64, one dimension, not negative). `engine` advances like
        PyTorch's.
        """
        return self.draw_from(rates, np.where(rates < 10, rates + 1, 3.0), engine, _write_uniforms)

    def draw_from(
        self, rates: np.ndarray, expected: np.ndarray, engine: Engine, write: Callable[[np.ndarray, np.ndarray], object]
    ) -> np.ndarray:
        """Return samples of these rates that take what `write(pairs of words, words)` makes of the stream.

        A sample is expected to take so many pairs.
        """
        with engine.lock, self._lock:
            return self._draw(rates, np.cumsum(expected), engine, write)

    def _draw(self, rates: np.ndarray, expected: np.ndarray, engine: Engine, write: Callable) -> np.ndarray:
        out = np.empty(len(rates), np.int64)
        rate = float(rates[0]) if rates.min() == rates.max() else None  # a scalar is validated faster than an array
        pieces, done, used, sample = UniformPieces(engine, engine.pairs_of_words), 0, 0, self.random.poisson
        room = READ_AHEAD - _DEVIATIONS * READ_AHEAD**0.5
        while done < len(out):
            before = expected[done - 1] if done else 0.0
            end = max(int(np.searchsorted(expected, before + room)), done + 1)
            needed = expected[min(end, len(out)) - 1] - before
            wanted = min(READ_AHEAD, int(needed + _DEVIATIONS * needed**0.5) + 64)
            pairs = pieces.draw(used, max(wanted - (len(pieces.piece) - used), 0))
            write(pairs, self.words[: len(pairs)])
            while True:
                self.rewind()
                drawn = sample(rates[done:end]) if rate is None else sample(rate, min(end, len(out)) - done)
                if self.used() <= len(pairs):
                    break
                end = done + max((end - done) // 2, 1)
            used = self.used()
            out[done : done + len(drawn)] = drawn
            done += len(drawn)
        pieces.close(used)
        return out


def _write_uniforms(pairs: np.ndarray, words: np.ndarray) -> None:
    np.left_shift(pairs, 11, out=words)


@functools.cache
def make_numpy_sampler() -> Sampler | None:
    """Return a sampler, or None if NumPy's generator has an unknown memory layout."""
    sampler = Sampler()
    if not sampler.is_known:
        return None
    sampler.words[:8] = np.arange(8, dtype=np.uint64) << np.uint64(59)
    sampler.rewind()
    served = np.array_equal(sampler.random.random_sample(8), np.arange(8) / 32) and sampler.used() == 8
    return sampler if served else None
