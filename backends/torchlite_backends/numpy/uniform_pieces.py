"""Uniforms of PyTorch's stream that are drawn ahead, for samples whose consumption of the stream depends on draws."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .mt19937 import Engine
from .normal_deviates import sample_uniform_doubles


def sample_equally(
    engine: Engine, size: int, per_sample: float, piece: int, find: Callable[[np.ndarray, int], tuple[np.ndarray, int]]
) -> np.ndarray:
    """Return so many samples of `find(uniforms, wanted)`: samples, and how many of the uniforms they take.

    A sample takes `per_sample` uniforms on average. `piece` are drawn at a time.
    """
    parts, missing, spare = [np.empty(0)], size, 64
    with engine.lock:
        pieces, used = UniformPieces(engine), 0
        while missing:
            uniforms = pieces.draw(used, min(int(per_sample * missing), piece) + spare)
            found, used = find(uniforms, missing)
            if not len(found):
                spare *= 4
            parts.append(found)
            missing -= len(found)
        pieces.close(used)
    return np.concatenate(parts)


class UniformPieces:
    """Pieces of the stream of uniform doubles, or of the pairs of words that uniforms are made of.

    The creator locks the engine until `close`.
    """

    def __init__(self, engine: Engine, read: Callable[[int], np.ndarray] | None = None) -> None:
        self.engine, self._read = engine, read or functools.partial(sample_uniform_doubles, engine)
        self.piece = self._read(0)
        self._drawn, self._marks = 0, [(0, engine.stream_position())]

    def draw(self, used: int, count: int) -> np.ndarray:
        """Return what is left of the piece behind the `used` uniforms, and `count` more."""
        self._marks = [self._marks[-1], (self._drawn, self.engine.stream_position())]
        self.piece = np.concatenate((self.piece[used:], self._read(count)))
        self._drawn += count
        return self.piece

    def close(self, used: int) -> None:
        """Set the engine behind the `used` uniforms of the piece. The rest of a piece is shorter than the next one."""
        total = self._drawn - len(self.piece) + used
        begin, mark = self._marks[-1] if self._marks[-1][0] <= total else self._marks[0]
        self.engine.restore_stream_position(mark)
        self.engine.words(2 * (total - begin))
