"""Eval-mode batch norm and clamp as an epilogue of a convolution, while its results are in cache, or alone."""

from __future__ import annotations

import math

import numpy as np

from . import cache_blocking
from .conv import conv_with_epilogue
from .row_blocks import F32

# Channels with fewer positions than this are processed as one row per image, with repeated factors.
_MIN_ROW_LENGTH = 24


class ConvEpilogue:
    """Scale and shift per channel, `x * scale + shift` (none without a mean), clamped to `least` and `most` (if
    finite).

    `done` is True if a convolution has applied it to its full result.
    """

    __slots__ = ("done", "least", "limits", "most", "scale", "shift")

    def __init__(self, weight, bias, mean, var, eps, least, most, offset=None):
        self.least, self.most, self.done = least, most, False
        if mean is None:
            self.scale = self.shift = None
            self.limits = np.array((least, most), F32)
            return
        scale = var.reshape(-1) + var.dtype.type(eps)
        np.sqrt(scale, out=scale)
        np.divide(1 if weight is None else weight.reshape(-1), scale, out=scale)
        mean = mean.reshape(-1)
        shift = (mean if offset is None else mean - offset) * scale
        np.subtract(0 if bias is None else bias.reshape(-1), shift, out=shift)
        self.limits = np.array((least, most), scale.dtype)
        self.scale, self.shift = scale, shift

    def copy(self):
        """Return one that is not done."""
        made = object.__new__(ConvEpilogue)
        made.scale, made.shift, made.limits = self.scale, self.shift, self.limits
        made.least, made.most, made.done = self.least, self.most, False
        return made

    def fold_into_weight(self, weight):
        """Return weights and a bias that include scale and shift; only the clamp remains."""
        weight, bias = weight * self.scale.reshape(-1, *(1,) * (weight.ndim - 1)), self.shift
        self.scale = self.shift = None
        return weight, bias

    def channels(self, rows):
        """Apply in place to (..., channels in order, positions); the dimensions before positions are channels or
        groups.
        """
        shape = (*rows.shape[:-1], 1)
        line = () if self.scale is None else (self.scale.reshape(shape), self.shift.reshape(shape))
        self._apply_to_rows(rows, line, rows)

    def apply_to_images(self, x, out=None):
        """Apply to (images, channels, *positions), in place without `out`."""
        out = x if out is None else out
        if not (x.flags.c_contiguous and out.flags.c_contiguous):  # oneDNN's of channels_last: a reshape would copy
            line = () if self.scale is None else (self.scale, self.shift)
            self._apply_to_rows(np.moveaxis(x, 1, -1), line, np.moveaxis(out, 1, -1))
            return out
        images, channels = x.shape[:2]
        length = math.prod(x.shape[2:])
        if not x.size:
            return out
        if self.scale is None:
            source, target = x.reshape(-1), out.reshape(-1)
            cache_blocking.run_blocks(
                lambda start, stop: self._apply_to_rows(source[start:stop], (), target[start:stop]), source.size, 1
            )
            return out
        short = length < _MIN_ROW_LENGTH
        shape = (images, channels * length) if short else (images * channels, length)
        source, target = x.reshape(shape), out.reshape(shape)
        line = self.scale, self.shift
        if short:
            line = tuple(np.repeat(v, length) for v in line)
        elif images > 1:
            line = tuple(np.tile(v, images) for v in line)

        def apply_to_block(start, stop):
            here = line if short else tuple(v[start:stop, None] for v in line)
            self._apply_to_rows(source[start:stop], here, target[start:stop])

        cache_blocking.run_blocks(apply_to_block, *shape)
        return out

    def _apply_to_rows(self, rows, line, out):
        if line:
            np.multiply(rows, line[0], out=out)
            rows = np.add(out, line[1], out=out)
        if self.least > -math.inf and self.most < math.inf:
            np.clip(rows, self.least, self.most, out=out)
        elif self.least > -math.inf:
            np.maximum(rows, self.least, out=out)
        elif self.most < math.inf:
            np.minimum(rows, self.most, out=out)


def _batch_norm_eval(input, weight, bias, mean, var, eps, least, most):
    x = np.ascontiguousarray(input)
    return ConvEpilogue(weight, bias, mean, var, eps, least, most).apply_to_images(x, np.empty(x.shape, x.dtype))


def _fused_conv_bn(
    input, filters, offset, stride, padding, dilation, transposed, output_padding, groups, weight, bias, mean, var, eps,
    least, most,
):  # fmt: skip
    finish = ConvEpilogue(weight, bias, mean, var, eps, least, most, offset)
    return conv_with_epilogue(
        input, filters, offset, stride, padding, dilation, transposed, output_padding, groups, finish
    )
