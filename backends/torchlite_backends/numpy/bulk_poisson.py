"""Poisson samples in bulk, by NumPy's sampler over PyTorch's uniform stream.

The number of uniforms per sample depends on the draws, so samples cannot be vectorised. NumPy's legacy sampler, whose
stream is frozen, takes the same steps as PyTorch's (`poisson_binomial` has them in Python). It reads a Mersenne
Twister. Here the words in the twister's state are chosen so that, tempered and converted to double by NumPy, they are
the next uniforms of PyTorch's stream.
"""

from __future__ import annotations

import functools

import numpy as np

from .mt19937 import WORDS, Engine, invert_tempering

MIN_COUNT = 64  # minimum samples for which this pays
LARGEST_RATE = 1e9
READ_AHEAD = 1 << 15  # words
FILL = 560  # words of the state's 624 that a call should use: a call that uses more is repeated

_LOW21, _LOW26 = np.uint32(0x1FFFFF), np.uint32(0x3FFFFFF)


def _to_numpy_words(words: np.ndarray) -> np.ndarray:
    """Return state words from which NumPy makes the doubles that PyTorch makes of `words`.

    Of the 53 bits, NumPy takes the upper 27 and 26 of two words, PyTorch the lower 21 of one and all of the next.
    """
    high, low = words[0::2], words[1::2]
    state = np.empty_like(words)
    state[0::2] = (high & _LOW21) << 11 | low >> 26 << 5
    state[1::2] = (low & _LOW26) << 6
    return invert_tempering(state)


class Sampler:
    """NumPy's sampler and the memory of its twister's state at `address`: 624 words and a position."""

    def __init__(self, twister: np.random.MT19937) -> None:
        import ctypes

        address = twister.ctypes.state_address
        self._memory = (ctypes.c_uint32 * (WORDS + 1)).from_address(address)
        self._state = np.ctypeslib.as_array(self._memory)
        self._twister = twister  # owns the memory
        self._sample = np.random.RandomState(twister).poisson

    def draw(self, rates: np.ndarray, engine: Engine) -> np.ndarray:
        """Return int64 samples of these rates (float64, one dimension, not negative). `engine` advances like
        PyTorch's.
        """
        with engine.lock, self._twister.lock:
            return self._draw(rates, engine)

    def _draw(self, rates: np.ndarray, engine: Engine) -> np.ndarray:
        out = np.empty(len(rates), np.int64)
        rate = float(rates[0]) if rates.min() == rates.max() else None  # a scalar is validated faster than an array
        state, sample = self._state, self._sample
        mark, words, used = engine.stream_position(), np.empty(0, np.uint32), 0
        done, count = 0, 16
        while done < len(out):
            if len(words) - used < WORDS:
                # The words read ahead are read again, so that the last read can be undone.
                engine.restore_stream_position(mark)
                engine.words(used)
                mark = engine.stream_position()
                words, used = _to_numpy_words(engine.words(READ_AHEAD)), 0
            count = min(count, len(out) - done)
            state[:WORDS] = words[used : used + WORDS]
            state[WORDS] = 0
            drawn = sample(rates[done : done + count]) if rate is None else sample(rate, count)
            if state[0] == words[used] and state[1] == words[used + 1]:
                taken = int(state[WORDS])
                out[done : done + count] = drawn
                done += count
                used += taken
                count = max(count * FILL // max(taken, FILL // 4), 1)
            else:  # the twister generated the next state
                count = max(count // 2, 1)
        engine.restore_stream_position(mark)
        engine.words(used)
        return out


@functools.cache
def make_numpy_sampler() -> Sampler | None:
    """Return a sampler, or None if NumPy's twister has an unknown memory layout."""
    twister = np.random.MT19937(1)
    sampler = Sampler(twister)
    known = twister.state["state"]
    if np.array_equal(sampler._state[:WORDS], known["key"]) and sampler._state[WORDS] == known["pos"]:
        return sampler
    return None
