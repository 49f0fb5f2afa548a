"""Many Poisson variates at once, by NumPy's sampler over PyTorch's uniforms.

How many uniforms a variate takes depends on what was drawn, so variates cannot be made side by side; and NumPy's legacy
sampler, whose stream is frozen, takes the same steps as PyTorch's (`random_counts.py` has them in Python). It reads a
Mersenne twister: here it finds words in the twister's state which, tempered and made a double by it, are the next
uniform of PyTorch's stream.
"""

from __future__ import annotations

import functools

import numpy as np

from .mt19937 import WORDS, Engine

MIN_COUNT = 64  # so many variates are worth the trouble
LARGEST_RATE = 1e9
READ_AHEAD = 1 << 15  # words
FILL = 560  # words that a call should take of the state's 624: a call that takes more is made again

_LOW21, _LOW26 = np.uint32(0x1FFFFF), np.uint32(0x3FFFFFF)
_TEMPER_B, _TEMPER_C = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)


def _untemper(y: np.ndarray) -> np.ndarray:
    """The words that the twister's tempering makes `y` of. `y` is overwritten."""
    y ^= y >> 18
    y ^= y << 15 & _TEMPER_C
    # Seven more bits are known after each step.
    x = y
    for _ in range(4):
        x = y ^ (x << 7 & _TEMPER_B)
    return x ^ (x >> 11) ^ (x >> 22)


def _to_numpy_words(words: np.ndarray) -> np.ndarray:
    """State words of which NumPy makes the doubles that PyTorch makes of `words`: 53 bits are the lower 21 of a word
    and all of the next one there, the upper 27 and the upper 26 here."""
    high, low = words[0::2], words[1::2]
    state = np.empty_like(words)
    state[0::2] = (high & _LOW21) << 11 | low >> 26 << 5
    state[1::2] = (low & _LOW26) << 6
    return _untemper(state)


class Sampler:
    """NumPy's sampler and the memory of its twister's state, which `address` tells: 624 words and a position."""

    def __init__(self, twister: np.random.MT19937) -> None:
        import ctypes

        address = twister.ctypes.state_address
        self._memory = (ctypes.c_uint32 * (WORDS + 1)).from_address(address)
        self._state = np.ctypeslib.as_array(self._memory)
        self._twister = twister  # owns the memory
        self._sample = np.random.RandomState(twister).poisson

    def draw(self, rates: np.ndarray, engine: Engine) -> np.ndarray:
        """Variates of these rates (float64, one dimension, not negative), as int64. `engine` moves as PyTorch's."""
        with engine.lock, self._twister.lock:
            return self._draw(rates, engine)

    def _draw(self, rates: np.ndarray, engine: Engine) -> np.ndarray:
        out = np.empty(len(rates), np.int64)
        rate = float(rates[0]) if rates.min() == rates.max() else None  # one number is checked quicker than many
        state, sample = self._state, self._sample
        mark, words, used = engine.mark(), np.empty(0, np.uint32), 0
        done, count = 0, 16
        while done < len(out):
            if len(words) - used < WORDS:
                # What was read ahead is read again, so that the last reading can be taken back.
                engine.go_back_to(mark)
                engine.words(used)
                mark = engine.mark()
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
            else:  # the twister went on to a state of its own
                count = max(count // 2, 1)
        engine.go_back_to(mark)
        engine.words(used)
        return out


@functools.cache
def numpy_sampler() -> Sampler | None:
    """A sampler, or None if NumPy keeps its twister in another way than is known here."""
    twister = np.random.MT19937(1)
    sampler = Sampler(twister)
    known = twister.state["state"]
    if np.array_equal(sampler._state[:WORDS], known["key"]) and sampler._state[WORDS] == known["pos"]:
        return sampler
    return None
