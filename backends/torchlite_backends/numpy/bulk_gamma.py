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
_STEADY = 1.5  # from this parameter on hardly any root is not positive
_TIE = 1e-9  # nearer to a tie than this, the C library's functions decide


class _Stepper:
    """The state of the loop over samples: the place in `uniform` and the second of a pair of normals, if kept."""

    def __init__(self, kinds: list[int], means: np.ndarray, slopes: np.ndarray, kept: float | None):
        self.kinds, self.means, self.slopes, self.kept = kinds, means.data, slopes.data, kept
        self.uniform, self.at, self.sample = means.data, 0, 0
        self.found: list[tuple[int, float, float]] = []

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


class _Attempts:
    """The pair of normals that begins at each place of a piece, and how far attempts with them are from refusal."""

    def __init__(self, uniform: np.ndarray, d: float, c: float):
        self.uniform, self.logs, self.d, self.c = uniform, np.log(1.0 - uniform), d, c
        radius = np.sqrt(-2.0 * np.log1p(-uniform[1:-MARGIN]))
        half = np.tan(math.pi * uniform[: -MARGIN - 1])  # of half the angle: faster than its cosine and sine
        square = half * half
        radius /= 1.0 + square
        self.first = (1.0 - square) * radius
        self.second = 2.0 * half * radius

    def refusal(self, normals: np.ndarray, place: int) -> np.ndarray:
        """Return the logarithms of the uniforms from `place` on, less their limit for acceptance of these normals.

        NaN where a root is not positive.
        """
        root = 1.0 + self.c * normals
        cube = root * root * root
        out = cube - np.log(cube)
        out -= 1.0
        out *= self.d
        out -= 0.5 * normals * normals
        out += self.logs[place : place + len(normals)]
        return out


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
    run = _run_different
    if kinds.min() == kinds.max():
        run = _run_equal if not kinds[0] and d == means.max() and d > _STEADY else _run_alike
    with engine.lock, np.errstate(all="ignore"):
        stepper = _Stepper(
            kinds.tolist(), np.ascontiguousarray(means), np.ascontiguousarray(slopes), engine.next_normal
        )
        pieces = UniformPieces(engine)
        while stepper.sample < count:
            uniform = pieces.draw(stepper.at, min(int(3.2 * (count - stepper.sample)), PIECE) + 8 * MARGIN)
            stepper.uniform, stepper.at = uniform.data, 0
            run(stepper, _Attempts(uniform, d, c), out)
        pieces.close(stepper.at)
        engine.next_normal = stepper.kept
    for sample, cube, boost in stepper.found:
        out.cubes[sample], out.before[sample] = cube, boost
    return out.cubes, out.before


# The functions below take the samples of a piece. The last samples of all are the stepper's, so that a kept normal is
# that of the C library.


def _run_equal(stepper: _Stepper, attempts: _Attempts, out: _Samples) -> None:
    """Shapes of 1 and more that are equal: attempts follow each other, and what is refused is left out."""
    end, last = len(attempts.first), len(stepper.kinds) - 2
    refusals = np.stack((attempts.refusal(attempts.first, 2), attempts.refusal(attempts.second, 3)), 1)
    refused = refusals >= 0
    doubtful = (~(np.abs(refusals) > _TIE)).any(1)
    while stepper.sample < len(stepper.kinds):
        if stepper.kept is None and stepper.at < end:
            at = stepper.at
            stop = int(doubtful[at::4].argmax()) if doubtful[at::4].any() else len(doubtful[at::4])
            accepted = ~refused[at : at + 4 * stop : 4]
            blocks = int(np.searchsorted(np.cumsum(accepted.sum(1)), last - stepper.sample, side="right"))
            if blocks := min(blocks, stop):
                chosen = slice(at, at + 4 * blocks, 4)
                normals = np.stack((attempts.first[chosen], attempts.second[chosen]), 1)[accepted[:blocks]]
                out.write(np.arange(stepper.sample, stepper.sample + len(normals)), normals)
                stepper.sample += len(normals)
                stepper.at += 4 * blocks
        if not stepper.take(end):
            return


def _run_alike(stepper: _Stepper, attempts: _Attempts, out: _Samples) -> None:
    """Shapes that are all below 1, or all not: a block takes equally many uniforms."""
    kind = stepper.kinds[0]
    stride, end, last = 4 + 2 * kind, len(attempts.first), len(stepper.kinds) - 2
    accepted = attempts.refusal(attempts.first, 2) < -_TIE
    accepted &= attempts.refusal(attempts.second, 3 + kind) < -_TIE
    columns = [accepted[kind + k :: stride].tobytes() for k in range(stride)]
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
    first = attempts.refusal(attempts.first, 2) < -_TIE
    accepted = [(first & (attempts.refusal(attempts.second, 3 + kind) < -_TIE)).tobytes() for kind in (0, 1)]
    kinds, end, last = stepper.kinds, len(attempts.first), len(stepper.kinds) - 2
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
    out.write(samples, attempts.first[places], attempts.uniform[places - 1])
    out.write(samples + 1, attempts.second[places], attempts.uniform[places + 3])
