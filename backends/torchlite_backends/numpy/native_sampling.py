"""Samples whose consumption of the stream depends on draws, by an engine's compiled loop."""

from __future__ import annotations

import numpy as np

from torchlite_backends.cpu_engines.engine_selection import find_native

from .mt19937 import Engine

MIN_COUNT = 256  # samples
_PIECE = 1 << 18  # uniforms that are drawn in one go


def sample_natively(engine: Engine, per_sample: float, *arrays: np.ndarray | int) -> bool:
    """Let the CPU's engine fill the output arrays (the last ones) of `consume_words`; False if it cannot.

    `per_sample` is the number of uniforms that a sample takes on average.
    """
    count = arrays[-1].size  # type: ignore[union-attr]
    if count < MIN_COUNT:
        return False
    consume = find_native("samples")
    if consume is None:
        return False
    state, spare = np.zeros(4), 64
    with engine.lock:
        if engine.next_normal is not None:
            state[:2] = 1, engine.next_normal
        while state[3] < count:
            done, mark = int(state[3]), engine.stream_position()
            words = np.ascontiguousarray(engine.words(2 * (min(int(per_sample * (count - done)), _PIECE) + spare)))
            finished = consume(words, state, arrays)
            engine.give_back(words, 2 * int(state[2]) if finished else 0, mark)
            if not finished:  # before the first piece: nothing was drawn
                return False
            if state[3] == done:  # a sample takes more than was drawn
                spare *= 4
        if len(arrays) == 5:  # gamma samples take normals
            engine.next_normal = float(state[1]) if state[0] else None
    return True
