"""Gamma samples in bulk: the attempts of all places of the stream at once, by NumPy.

A pair of normals serves two attempts, and nearly all attempts are accepted. So nearly all samples lie in blocks: two
samples, whose pair of normals begins at a place `q` of the stream and which take the uniforms at `q + 2` and behind it,
after the uniform of a shape below 1. For each place it is computed whether a block that begins there is accepted. Then
only the other blocks take steps in Python (`_Stepper`), by the C library's functions, as PyTorch.

Marsaglia and Tsang's test accepts more draws the larger the shape: the derivative of its right side by d is 0 at t = 1,
t = 1 + c x, and that one's by t is 1.5 (t - 1)^3 (t + 1) / t^2. So the smallest shape decides for all: what it refuses
is looked at again.
"""

from __future__ import annotations

import math

import numpy as np

from .mt19937 import Engine
from .uniform_pieces import UniformPieces

MIN_COUNT = 256  # samples from which this pays
PIECE = 1 << 14  # places that are looked at in one go
MARGIN = 16  # places behind the last block of a piece
_BLOCKS, _ODD = 1 << 11, 1e-3  # blocks of attempts at a time at most; roots that are not positive at most, of all
_TIE = 1e-9  # nearer to a tie than this, the C library's functions decide
_NARROW_TIE, _NARROW = 1e-3, 64  # so much nearer in single precision, for attempts of shapes from less than 64 on


class _Stepper:
    """The state of the loop over samples: the place in `uniform` and the second of a pair of normals, if kept."""

    def __init__(self, kinds: list[int], means: np.ndarray, slopes: np.ndarray, kept: float | None):
        self.kinds, self.means, self.slopes, self.kept = kinds, means.data, slopes.data, kept
        self.uniform, self.at, self.sample = means.data, 0, 0
        self.largest = float(means.max())
        self.found: list[tuple[int, float, float]] = []

    def settle(self, at: int, second: bool, sample: int) -> None:
        """Go on with a sample at the pair of normals that begins at a place, or with the second one of it."""
        self.at, self.sample, self.kept = at, sample, None
        if second:
            radius = math.sqrt(-2.0 * math.log1p(-self.uniform[at + 1]))
            self.at, self.kept = at + 3, radius * math.sin(2.0 * math.pi * self.uniform[at])

    def take(self, end: int) -> bool:
        """Draw a sample; False, and no change, if its draws reach beyond `end`."""
        at, kept, uniform, boost = self.at, self.kept, self.uniform, 0.0
        d, c = self.means[self.sample], self.slopes[self.sample]
        if self.kinds[self.sample]:
            boost = uniform[at]
            at += 1
        while at + 2 < end:
            if kept is None:
                radius, angle = math.sqrt(-2.0 * math.log1p(-uniform[at + 1])), 2.0 * math.pi * uniform[at]
                x, kept = radius * math.cos(angle), radius * math.sin(angle)
                at += 2
            else:
                x, kept = kept, None
            root = 1.0 + c * x
            if root <= 0.0:
                continue
            u = 1.0 - uniform[at]
            at += 1
            v = root * root * root
            square = x * x
            if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
                self.found.append((self.sample, v, boost))
                self.at, self.kept = at, kept
                self.sample += 1
                return True
        return False


def _normal_pairs(half_angles: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of normals of halves of angles and of the logarithms of 1 - u."""
    radius = np.sqrt(-2.0 * logs)
    half = np.tan(half_angles)  # faster than the angle's cosine and sine
    square = half * half
    radius /= 1.0 + square
    half *= radius
    half *= 2.0
    np.subtract(1.0, square, out=square)
    square *= radius
    return square, half


def _lack(normals: np.ndarray, d: float, c: float) -> np.ndarray:
    """Return what the logarithms of attempts' uniforms must be below for acceptance, times -1.

    NaN: a root is not positive.
    """
    root = c * normals
    root += 1.0
    out = root * root
    out *= root
    np.log(out, out=root)
    out -= root
    out -= 1.0
    out *= d
    np.multiply(normals, normals, out=root)
    root *= 0.5
    out -= root
    return out


class _Attempts:
    """Whether the two attempts with the pair of normals that begins at each place are accepted, for kinds 0 and 1.

    Single precision serves for small shapes, with a wider distance to ties.
    """

    def __init__(self, uniform: np.ndarray, d: float, c: float, kinds: tuple[int, ...]):
        self.uniform, self.size = uniform, len(uniform) - MARGIN - 1
        dtype, tie = (np.float32, _NARROW_TIE) if d < _NARROW else (np.float64, _TIE)
        logs = np.log((1.0 - uniform).astype(dtype))
        first, second = _normal_pairs((math.pi * uniform[: self.size]).astype(dtype), logs[1 : self.size + 1])
        first, second = _lack(first, d, c), _lack(second, d, c)
        first += logs[2 : self.size + 2]
        both = first < -tie
        self.accepted = {kind: both & (second + logs[3 + kind : self.size + 3 + kind] < -tie) for kind in kinds}

    def normals(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of normals that begin at some places."""
        return _normal_pairs(math.pi * self.uniform[places], np.log(1.0 - self.uniform[places + 1]))


class _Samples:
    """The samples' kinds and slopes, and the results."""

    def __init__(self, kinds: np.ndarray, slopes: np.ndarray):
        self.kinds, self.slopes = kinds, slopes
        self.cubes, self.before = np.empty(len(kinds)), np.zeros(len(kinds))

    def write(self, samples: np.ndarray, normals: np.ndarray, before: np.ndarray | None = None) -> None:
        root = 1.0 + self.slopes[samples] * normals
        self.cubes[samples] = root * root * root
        if before is not None:
            self.before[samples] = np.where(self.kinds[samples] == 1, before, 0.0)


def sample_cubes(
    kinds: np.ndarray, means: np.ndarray, slopes: np.ndarray, engine: Engine
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sample its cube and the uniform before it, 0 if it takes none. No sample is of kind 2."""
    count = len(kinds)
    out = _Samples(kinds, slopes)
    d, c = float(means.min()), float(slopes.max())
    kinds_there = tuple({int(kinds.min()), int(kinds.max())})
    run = _run_different if len(kinds_there) > 1 else _run_alike
    # The share of attempts whose root is not positive, after which uniforms lie otherwise.
    odd = float(np.mean(0.4 * slopes * np.exp(-0.5 / (slopes * slopes))))
    blocks = int(min(1 / (4 * odd + 1e-9), _BLOCKS)) if odd < _ODD and not kinds.max() else 0
    piece = 4 * PIECE if blocks else PIECE
    with engine.lock, np.errstate(all="ignore"):
        stepper = _Stepper(
            kinds.tolist(), np.ascontiguousarray(means), np.ascontiguousarray(slopes), engine.next_normal
        )
        pieces = UniformPieces(engine)
        while stepper.sample < count:
            uniform = pieces.draw(stepper.at, min(int(3.2 * (count - stepper.sample)), piece) + 8 * MARGIN)
            stepper.uniform, stepper.at = uniform.data, 0
            if blocks:
                _run_regular(stepper, uniform, d, c, blocks, out)
            else:
                run(stepper, _Attempts(uniform, d, c, kinds_there), out)
        pieces.close(stepper.at)
        engine.next_normal = stepper.kept
    for sample, cube, boost in stepper.found:
        out.cubes[sample], out.before[sample] = cube, boost
    return out.cubes, out.before


# The functions below take the samples of a piece. The last samples of all are the stepper's, so that a kept normal is
# that of the C library.


def _run_regular(stepper: _Stepper, uniform: np.ndarray, d: float, c: float, blocks: int, out: _Samples) -> None:
    """Shapes of 1 and more: attempts follow each other as long as roots are positive, and refused ones are left out."""
    end, last, count = len(uniform) - MARGIN - 1, len(stepper.kinds) - 2, len(stepper.kinds)
    equal = d == stepper.largest
    while stepper.sample < count:
        size = min((end - stepper.at) // 4, blocks, (last - stepper.sample) * 9 // 16 + 8)
        if stepper.kept is None and stepper.sample < last and size > 0:
            begin, sample = stepper.at, stepper.sample
            normals, logs = _regular_attempts(uniform[begin : begin + 4 * size].reshape(size, 4))
            excess = _lack(normals, d, c) + logs
            if equal:
                unclear = np.flatnonzero(~(np.abs(excess) > _TIE))
                stop = int(unclear[0]) if unclear.size else len(normals)
                refused = np.flatnonzero(excess[:stop] > 0).tolist()
            else:
                stop, refused = _look_at_doubtful(stepper, normals, logs, np.flatnonzero(~(excess < -_TIE)))
            accepted = np.ones(stop, bool)
            accepted[refused] = False
            chosen = np.flatnonzero(accepted)[: last - sample]
            if len(chosen) == last - sample:
                stop = int(chosen[-1]) + 1
            out.write(np.arange(sample, sample + len(chosen)), normals[chosen])
            stepper.settle(begin + 4 * (stop // 2), stop % 2 == 1, sample + len(chosen))
        if stepper.sample < count and not stepper.take(end):
            return


def _regular_attempts(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the normals of attempts, two a block of four uniforms, and the logarithms of their uniforms."""
    normals = np.empty((len(blocks), 2))
    normals[:, 0], normals[:, 1] = _normal_pairs(math.pi * blocks[:, 0], np.log(1.0 - blocks[:, 1]))
    return normals.reshape(-1), np.log(1.0 - blocks[:, 2:]).reshape(-1)


def _look_at_doubtful(
    stepper: _Stepper, normals: np.ndarray, logs: np.ndarray, doubtful: np.ndarray
) -> tuple[int, list[int]]:
    """Return the attempt at which `_Stepper` goes on, or the number of attempts, and the refused ones before it.

    An attempt's sample depends on how many attempts before it are refused.
    """
    refused: list[int] = []
    first, count, log = stepper.sample, len(stepper.kinds), math.log
    means, slopes = stepper.means, stepper.slopes
    for attempt, x, u in zip(doubtful.tolist(), normals[doubtful].tolist(), logs[doubtful].tolist(), strict=True):
        sample = first + attempt - len(refused)
        if sample >= count:
            return attempt, refused
        root = 1.0 + slopes[sample] * x
        if root <= _TIE:
            return attempt, refused
        v = root * root * root
        excess = u - 0.5 * x * x - means[sample] * (1.0 - v + log(v))
        if excess > _TIE:
            refused.append(attempt)
        elif excess >= -_TIE:
            return attempt, refused
    return len(normals), refused


def _run_alike(stepper: _Stepper, attempts: _Attempts, out: _Samples) -> None:
    """Shapes that are all below 1, or all not: a block takes equally many uniforms."""
    kind = stepper.kinds[0]
    stride, end, last = 4 + 2 * kind, attempts.size, len(stepper.kinds) - 2
    columns = [attempts.accepted[kind][kind + k :: stride].tobytes() for k in range(stride)]
    runs: list[tuple[int, int, int]] = []
    while stepper.sample < len(stepper.kinds):
        if stepper.kept is None:
            row, column = divmod(stepper.at, stride)
            stop = columns[column].find(0, row)
            blocks = min((len(columns[column]) if stop < 0 else stop) - row, (last - stepper.sample) // 2)
            if blocks > 0:
                runs.append((stepper.sample, stepper.at + kind, blocks))
                stepper.sample += 2 * blocks
                stepper.at += stride * blocks
        if not stepper.take(end):
            break
    if runs:
        samples, places, lengths = np.array(runs).T
        nth = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        _write_blocks(np.repeat(samples, lengths) + 2 * nth, np.repeat(places, lengths) + stride * nth, attempts, out)


def _run_different(stepper: _Stepper, attempts: _Attempts, out: _Samples) -> None:
    """Shapes below 1 among others: a block takes uniforms as its samples say."""
    accepted = [attempts.accepted[kind].tobytes() for kind in (0, 1)]
    kinds, end, last = stepper.kinds, attempts.size, len(stepper.kinds) - 2
    starts: list[int] = []
    places: list[int] = []
    while stepper.sample < len(kinds):
        if stepper.kept is None:
            sample, at = stepper.sample, stepper.at
            while sample < last and (place := at + kinds[sample]) < end:
                following = kinds[sample + 1]
                if not accepted[following][place]:
                    break
                starts.append(sample)
                places.append(place)
                sample += 2
                at = place + 4 + following
            stepper.sample, stepper.at = sample, at
        if not stepper.take(end):
            break
    _write_blocks(np.array(starts, np.int64), np.array(places, np.int64), attempts, out)


def _write_blocks(samples: np.ndarray, places: np.ndarray, attempts: _Attempts, out: _Samples) -> None:
    first, second = attempts.normals(places)
    out.write(samples, first, attempts.uniform[places - 1])
    out.write(samples + 1, second, attempts.uniform[places + 3])
