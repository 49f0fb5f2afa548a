"""Depthwise convolution as products with banded matrices.

Along an image row, a kernel row is a matrix (inputs, outputs) with its elements on diagonals, the same for every run of
`TILE` outputs. A channel's rows of all images times that matrix are one BLAS product; the kernel's rows are products of
the image shifted by rows. This multiplies zeros and is faster all the same: NumPy needs two passes per kernel position,
so short that two threads wait for each other's GIL (192 channels of 8 images of 16x16: 0.37 ms for 1.1, two threads of
Zen 5).

Infinities and NaN spread over a tile by products with zeros; the caller then uses another algorithm.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torchlite._settings.cached_property import cached_property

from .cache_blocking import get_scratch_buffer, parallel_for

# Outputs of a run along a row, input positions that they may read, and the shortest rows for which it pays.
TILE, _WIDEST, _SHORTEST = 16, 64, 8
# Minimum elements of the input, and elements of a block; the number of blocks is even.
_LARGE, _BLOCK = 1 << 17, 1 << 18
# Minimum rows of all images for the weight's gradient.
_TALL = 48


class BandLayout:
    """Partition of a plan's rows. Of two numbers the first is for rows, the second for columns."""

    def __init__(self, plan):
        fields = (plan.size, plan.out, plan.kernel, plan.stride, plan.padding, plan.dilation)
        if len(plan.size) == 1:
            fields = tuple((filler, *f) for f, filler in zip(fields, (1, 1, 1, 1, 0, 1), strict=True))
        self.size, self.out, self.kernel, self.stride, self.padding, dilation = fields
        self.batch, self.channels = plan.batch, plan.channels
        self.reach = tuple(d * (k - 1) for k, d in zip(self.kernel, dilation, strict=True))
        self.offsets = tuple(range(0, r + 1, d) for r, d in zip(self.reach, dilation, strict=True))
        # Forwards: rows of an image that outputs look at, a multiple of the stride, and inputs of a tile.
        step, across = self.stride
        self.rows = -(-((self.out[0] - 1) * step + self.reach[0] + 1) // step) * step
        self.tile = min(TILE, self.out[1])
        self.tiles = -(-self.out[1] // self.tile)
        self.inputs = (self.tile - 1) * across + self.reach[1] + 1
        # Backward: the padded input from a multiple of the stride on, outputs above and left of an input position that
        # read it, rows of these, inputs of a tile, and outputs that read it.
        self.first = tuple(p // s for p, s in zip(self.padding, self.stride, strict=True))
        self.before = tuple(r // s for r, s in zip(self.reach, self.stride, strict=True))
        self.rows_back = self.before[0] + (self.padding[0] + self.size[0] - 1) // step + 1 - self.first[0]
        self.tile_back = -(-min(TILE, self.size[1]) // across) * across
        self.tiles_back = -(-(self.padding[1] + self.size[1] - self.first[1] * across) // self.tile_back)
        self.outputs = self.before[1] + (self.tile_back - 1) // across + 1

    def blocks(self):
        """Return (first channel, one past the last) of blocks of channels."""
        total = self.batch * self.channels * self.rows * self.inputs * self.tiles
        count = min(self.channels, 2 * -(-total // (2 * _BLOCK)))
        bounds = [self.channels * k // count for k in range(count + 1)]
        return list(itertools.pairwise(bounds))

    @cached_property
    def diagonals(self):
        """Return (input of a tile, output, kernel column) of a tile matrix's nonzero elements."""
        return _transpose_triples(
            (u * self.stride[1] + offset, u, j) for j, offset in enumerate(self.offsets[1]) for u in range(self.tile)
        )

    @cached_property
    def diagonals_back(self):
        """Return (output, input of the tile, kernel column) of the backward matrix's nonzero elements."""
        return _transpose_triples(
            (k, (k - self.before[1]) * self.stride[1] + offset, j)
            for j, offset in enumerate(self.offsets[1])
            for k in range(self.outputs)
            if 0 <= (k - self.before[1]) * self.stride[1] + offset < self.tile_back
        )


def _transpose_triples(triples):
    return tuple(np.array(numbers) for numbers in zip(*triples, strict=True))


@functools.lru_cache(maxsize=512)
def _make_band_layout(plan):
    return BandLayout(plan)


def is_faster(plan, x) -> bool:
    """True if this algorithm is faster."""
    if x.dtype.kind != "f" or x.size < _LARGE or min(plan.out[-1], plan.size[-1]) < _SHORTEST:
        return False
    return _make_band_layout(plan).inputs <= _WIDEST


def is_faster_for_weight_grad(plan, x) -> bool:
    """True if it is faster for the weight's gradient, whose products sum over all rows of a channel."""
    return is_faster(plan, x) and len(plan.size) == 2 and plan.batch * plan.out[0] >= _TALL


def _make_band_matrices(weight, diagonals, rows, columns):
    """Return (channels, kernel rows, rows, columns) with a kernel's rows on diagonals."""
    channels, height = weight.shape[0], weight.shape[-2] if weight.ndim == 4 else 1
    matrices = np.zeros((channels, height, rows, columns), weight.dtype)
    at, to, kernel = diagonals
    matrices[:, :, at, to] = weight.reshape(channels, height, -1)[:, :, kernel]
    return matrices


def view_as_2d(array):
    """Return an array (images, channels, *positions) with two spatial dimensions."""
    return array if array.ndim == 4 else array[:, :, None]


def _pack_rows(slot, source, rows, columns, above, left, behind):
    """Copy some channels of (images, channels, height, width) to (channels, images * rows plus a margin, columns).

    Each image is zero-padded; negative `above` and `left` drop rows and columns instead.
    """
    source = source[:, :, max(-above, 0) :, max(-left, 0) :]
    above, left = max(above, 0), max(left, 0)
    images, channels, height, width = source.shape
    memory = get_scratch_buffer(slot, (channels, images * rows + behind, columns), source.dtype)
    memory[...] = 0
    inside = memory[:, : images * rows].reshape(channels, images, rows, columns)
    height, width = max(min(height, rows - above), 0), max(min(width, columns - left), 0)
    inside[:, :, above : above + height, left : left + width] = source[:, :, :height, :width].swapaxes(0, 1)
    return memory


def _view_strided_runs(memory, first, count, step, tiles, apart, length):
    """View runs of every `step`-th row of each channel from `first` on, `apart` from each other.

    The shape is (channels, tiles, count, length).
    """
    channel, row, item = memory.strides
    shape = (len(memory), tiles, count, length)
    return as_strided(memory[:, first:], shape, (channel, apart * item, step * row, item), writeable=False)


def _sum_products(terms, out, tiles):
    """Compute out = the sum of runs @ matrices over some terms, (channels, rows, tiles * columns)."""
    channels, rows = out.shape[:2]
    scratch = get_scratch_buffer(2, out.shape, out.dtype)
    for number, (runs, matrices) in enumerate(terms):
        target = scratch if number else out
        np.matmul(runs, matrices[:, None], out=target.reshape(channels, rows, tiles, -1).swapaxes(1, 2))
        if number:
            np.add(out, scratch, out=out)


def _is_finite(array) -> bool:
    flat = array.reshape(-1)
    return bool(np.isfinite(flat.dot(flat)))


def conv_forward(x, weight, bias, plan, out):
    """Forward pass into `out`; False if the result is not finite."""
    cut, x, target, finite = _make_band_layout(plan), view_as_2d(x), view_as_2d(out), []
    matrices = _make_band_matrices(weight, cut.diagonals, cut.inputs, cut.tile)
    (height, width), (step, across), width_in = (
        cut.out,
        cut.stride,
        cut.inputs + (cut.tiles - 1) * cut.tile * cut.stride[1],
    )
    count = cut.batch * cut.rows // step

    def convolve_channels(start, stop):
        memory = _pack_rows(0, x[:, start:stop], cut.rows, width_in, *cut.padding, cut.reach[0])
        result = get_scratch_buffer(1, (stop - start, count, cut.tiles * cut.tile), x.dtype)
        terms = [
            (
                _view_strided_runs(memory, offset, count, step, cut.tiles, cut.tile * across, cut.inputs),
                matrices[start:stop, i],
            )
            for i, offset in enumerate(cut.offsets[0])
        ]
        _sum_products(terms, result, cut.tiles)
        finite.append(_is_finite(result))
        kept = result.reshape(stop - start, cut.batch, cut.rows // step, -1)[:, :, :height, :width].swapaxes(0, 1)
        if bias is None:
            target[:, start:stop] = kept
        else:
            np.add(kept, bias[start:stop, None, None], out=target[:, start:stop])

    parallel_for(convolve_channels, cut.blocks())
    return all(finite)


def conv_transpose(g, weight, plan, out):
    """Gradient of the input into `out`; False if it is not finite."""
    cut, g, target, finite = _make_band_layout(plan), view_as_2d(g), view_as_2d(out), []
    matrices = _make_band_matrices(weight, cut.diagonals_back, cut.outputs, cut.tile_back)
    (step, across), rows, apart = cut.stride, cut.rows_back, cut.tile_back // cut.stride[1]
    count, columns = cut.batch * rows, cut.outputs + (cut.tiles_back - 1) * apart
    above, left = (b - f for b, f in zip(cut.before, cut.first, strict=True))
    begin = cut.padding[1] - cut.first[1] * across

    def convolve_channels(start, stop):
        memory = _pack_rows(0, g[:, start:stop], rows, columns, above, left, cut.before[0])
        result = get_scratch_buffer(1, (stop - start, count, cut.tiles_back * cut.tile_back), g.dtype)
        for phase in range(step):
            # Rows `phase`, `phase + step` ... of the padded input: each kernel row's outputs are a fixed number of rows
            # above.
            terms = [
                (
                    _view_strided_runs(
                        memory, cut.before[0] - offset // step, count, 1, cut.tiles_back, apart, cut.outputs
                    ),
                    matrices[start:stop, i],
                )
                for i, offset in enumerate(cut.offsets[0])
                if offset % step == phase
            ]
            skipped = int(phase + step * cut.first[0] < cut.padding[0])
            place = target[:, start:stop, phase + step * (cut.first[0] + skipped) - cut.padding[0] :: step]
            if not terms:
                place[...] = 0
                continue
            _sum_products(terms, result, cut.tiles_back)
            finite.append(_is_finite(result))
            whole = result.reshape(stop - start, cut.batch, rows, -1)[:, :, skipped : skipped + place.shape[2]]
            place[...] = whole[..., begin : begin + cut.size[1]].swapaxes(0, 1)

    parallel_for(convolve_channels, cut.blocks())
    return all(finite)


def weight_gradient(g, x, gradient, plan):
    """Gradient of the weight into `gradient`; False if it is not finite."""
    cut, g, x = _make_band_layout(plan), view_as_2d(g), view_as_2d(x)
    step, across = cut.stride
    count, width_in = cut.batch * cut.rows // step, cut.inputs + (cut.tiles - 1) * cut.tile * across
    at, to, _ = cut.diagonals
    result = gradient.reshape(cut.channels, *cut.kernel)

    def sum_channels(start, stop):
        inputs = _pack_rows(0, x[:, start:stop], cut.rows, width_in, *cut.padding, cut.reach[0])
        grads = _pack_rows(1, g[:, start:stop], cut.rows // step, cut.tiles * cut.tile, 0, 0, 0)
        runs = _view_strided_runs(grads, 0, count, 1, cut.tiles, cut.tile, cut.tile).swapaxes(2, 3)
        for i, offset in enumerate(cut.offsets[0]):
            places = _view_strided_runs(inputs, offset, count, step, cut.tiles, cut.tile * across, cut.inputs)
            products = np.add.reduce(np.matmul(runs, places), 1)
            result[start:stop, i] = np.add.reduce(products[:, to, at].reshape(stop - start, -1, cut.tile), 2)

    parallel_for(sum_channels, cut.blocks())
    return _is_finite(gradient)
