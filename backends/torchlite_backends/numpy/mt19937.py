"""Mersenne Twister (MT19937) generator with PyTorch's CPU stream.

`Engine` has the twister's state, returns its words in bulk, and converts its state to PyTorch's 5056-byte layout and
back. The distributions are in `random`. Everything is exact: after any sequence of calls the position in the stream is
PyTorch's.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import numpy as np

from torchlite._settings import fork_locks
from torchlite_backends.cpu_engines.engine_selection import find_native

WORDS = 624
STATE_BYTES = 5056

# The C structure that PyTorch's generator state is a dump of. `left` and `next` are the twister's counters, `state` has
# one word in each 64-bit slot.
STATE = np.dtype(
    [
        ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("state", "<u8", (WORDS,)),
        ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"), ("normal_is_valid", "<i4"), ("padding", "<i4"),
        ("next_float_normal", "<f4"), ("next_float_normal_is_valid", "u1"), ("padding_end", "u1", (3,)),
    ]
)  # fmt: skip

_TEMPER_B, _TEMPER_C = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)

# Twisters of engines that are gone, for the next ones: to make one takes 25 us. A data loader and its samplers make
# some in each epoch.
_SPARE = 8
_spare_twisters: list[tuple[Any, Any]] = []

# Minimum words for a CPU engine's kernel.
_MANY = 1 << 13


@functools.cache
def _zeros_as_seed() -> Any:
    """Return the seed of a twister that is seeded at once: NumPy's own sequence takes three quarters of the time.

    `numpy.random` is loaded with the first generator.
    """

    class Zeros(np.random.bit_generator.ISeedSequence):
        def generate_state(self, n_words: int, dtype: type = np.uint32) -> np.ndarray:
            return np.zeros(n_words, dtype)

    return Zeros()


def invert_tempering(y: np.ndarray) -> np.ndarray:
    """Return the words of a state whose outputs are `y`, which is overwritten."""
    y ^= y >> 18
    y ^= y << 15 & _TEMPER_C
    # Seven more bits are known after each step.
    x = y
    for _ in range(4):
        x = y ^ (x << 7 & _TEMPER_B)
    return x ^ (x >> 11) ^ (x >> 22)


def _join_words(words: np.ndarray, out: np.ndarray) -> np.ndarray:
    np.left_shift(words[0::2], 32, out=out, dtype=np.uint64)
    out |= words[1::2]
    return out


class Engine:
    """Generator of the NumPy backend.

    `_block` has the 624 words of the current twister block, and `position` the number of used ones, so a small draw is
    a slice. NumPy's twister is always at the end of that block.
    """

    def __init__(self, seed: int = 5489) -> None:
        self.lock = fork_locks.acquire_before_fork(threading.RLock())
        try:
            self._twister, self._draw = _spare_twisters.pop()
        except IndexError:
            self._twister = np.random.MT19937(_zeros_as_seed())
            self._draw = np.random.Generator(self._twister).integers
        self.manual_seed(seed)

    def __del__(self, spare: list = _spare_twisters, most: int = _SPARE) -> None:
        # Defaults, because the module's names are None for an engine that goes at the end of the interpreter.
        if len(spare) < most and hasattr(self, "_draw"):
            spare.append((self._twister, self._draw))

    def manual_seed(self, seed: int) -> None:
        """Restart from `seed`, an unsigned 64-bit integer whose low 32 bits select the stream."""
        with self.lock:
            self._twister._legacy_seeding(seed & 0xFFFFFFFF)
            self.initial_seed = seed
            self._start_block(WORDS, fresh=True)
            self.next_normal: float | None = None
            self.next_float_normal: float | None = None

    def seed(self) -> int:
        """Restart from a random seed (53 bits) and return it."""
        seed = int.from_bytes(os.urandom(8), "little") >> 11
        self.manual_seed(seed)
        return seed

    def _start_block(self, position: int, fresh: bool) -> None:
        self._block = np.empty(0, np.uint32)
        self.position = position
        self._fresh = fresh
        self.ahead_from, self.ahead = (
            WORDS + 1,
            self._block,
        )  # normals computed from the words at a position, not yet read; used by normal_deviates.py

    def words(self, count: int) -> np.ndarray:
        """Return the next `count` 32-bit words, as uint32. Read only: the array may be a view of the current block."""
        with self.lock:
            start = self.position
            end = start + count
            if end <= WORDS:
                self.position = end
                return self._block[start:end]
            rest = end - WORDS
            whole = (rest - 1) // WORDS * WORDS  # the last block is entered only when one of its words is read
            out, first = np.empty(count, np.uint32), WORDS - start
            out[:first] = self._block[start:]
            if whole:
                self._generate_blocks(out[first : first + whole])
            self._enter_block(self._draw(0, 1 << 32, size=WORDS, dtype=np.uint32), rest - whole)
            out[first + whole :] = self._block[: self.position]
            return out

    def pairs_of_words(self, count: int) -> np.ndarray:
        """Return the next `count` pairs of words, as uint64: the first word of a pair in the upper half.

        NumPy generates pairs in three quarters of the time of words.
        """
        with self.lock:
            first, out = (WORDS - self.position) // 2, np.empty(count, np.uint64)
            if self.position % 2 or count <= first:
                return _join_words(self.words(2 * count), out)
            end = first + (count - first - 1) // (WORDS // 2) * (WORDS // 2)
            _join_words(self.words(2 * first), out[:first])
            if end > first:
                out[first:end] = self._draw(0, 1 << 64, size=end - first, dtype=np.uint64)
            _join_words(self.words(2 * (count - end)), out[end:])
            return out

    def _enter_block(self, words: np.ndarray, position: int) -> None:
        self._block, self.position = words, position
        self._fresh = False
        self.ahead_from = WORDS + 1

    def _generate_blocks(self, out: np.ndarray) -> None:
        """Write the words of full blocks after the current one."""
        if out.size >= _MANY and (fill := find_native("words")) is not None:
            if fill(self._twister.ctypes.state_address, out):
                return
        out[...] = self._draw(0, 1 << 32, size=out.size, dtype=np.uint32)

    def give_back(self, words: np.ndarray, used: int, mark: tuple) -> None:
        """Set the position behind the first `used` of the words that were read last, from the position `mark` on."""
        with self.lock:
            first = WORDS - mark[2]  # of the block that the words begin in
            if used <= first:
                self.restore_stream_position(mark)
                self.words(used)
                return
            start = first + (used - first - 1) // WORDS * WORDS
            if start + WORDS > words.size:  # the current block
                self.position = used - start
                return
            block = words[start : start + WORDS].copy()
            key = invert_tempering(block.copy())
            self._twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": WORDS}}
            self._enter_block(block, used - start)

    def unread_words(self) -> np.ndarray:
        """Return the words left in the current block, without reading them."""
        return self._block[self.position :]

    def stream_position(self) -> tuple:
        """Return the stream position, for `go_back_to`."""
        return self._twister.state, self._block, self.position, self._fresh

    def restore_stream_position(self, mark: tuple) -> None:
        """Reset to the position of `mark`."""
        with self.lock:
            self._twister.state, self._block, self.position, self._fresh = mark
            self.ahead_from = WORDS + 1

    def random(self) -> int:
        """Return one 32-bit word."""
        return int(self.words(1)[0])

    def get_state(self) -> np.ndarray:
        """Return the state in PyTorch's layout: 5056 bytes as uint8."""
        with self.lock:
            record = np.zeros((), STATE)
            record["seed"] = self.initial_seed
            record["left"] = 1 if self._fresh else WORDS + 1 - self.position
            record["seeded"] = 1
            record["next"] = 0 if self._fresh else self.position
            record["state"] = self._twister.state["state"]["key"]
            if self.next_normal is not None:
                record["normal_is_valid"] = 1
                record["normal_y"] = self.next_normal
            if self.next_float_normal is not None:
                record["next_float_normal_is_valid"] = 1
                record["next_float_normal"] = self.next_float_normal
            return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Set the state from PyTorch's layout."""
        data = np.ascontiguousarray(state, np.uint8).tobytes()
        if len(data) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                f"{len(data)}"
            )
        record = np.frombuffer(data, STATE)[0]
        left, position = int(record["left"]), int(record["next"])
        if record["seeded"] != 1 or not 0 < left <= WORDS or position > WORDS:
            raise RuntimeError("Invalid mt19937 state")
        fresh = left == 1 and position == 0
        if left == 1:
            position = WORDS
        with self.lock:
            self._twister.state = {
                "bit_generator": "MT19937",
                "state": {"key": record["state"].astype(np.uint32), "pos": position},
            }
            self.initial_seed = int(record["seed"])
            self._start_block(position, fresh)
            if position < WORDS:
                self._block = np.zeros(WORDS, np.uint32)
                self._block[position:] = self._draw(0, 1 << 32, size=WORDS - position, dtype=np.uint32)
            self.next_normal = float(record["normal_y"]) if record["normal_is_valid"] else None
            self.next_float_normal = (
                float(record["next_float_normal"]) if record["next_float_normal_is_valid"] else None
            )
