"""Bilinear sampling of images on a grid; the composite serves other modes and volumes."""

from __future__ import annotations

import numpy as np

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device

from .row_blocks import F32, F64
from .threaded_copy import copy_row_major

_NARROW = 32  # channels up to which a column is repeated along them


def serves(input, grid, mode, padding_mode) -> bool:
    """True for images that are sampled bilinearly, without reflection."""
    return (
        mode == "bilinear"
        and padding_mode != "reflection"
        and input.ndim == 4
        and input.dtype in (F32, F64)
        and grid.dtype == input.dtype
        and input.size > 0
        and grid.size > 0
    )


def _grid_sample(input, grid, mode, padding_mode, align_corners):
    if not serves(input, grid, mode, padding_mode):
        record = REGISTRY["_grid_sample"]
        return record.composite(table_of(torch_device("cpu")), input, grid, mode, padding_mode, align_corners)
    batch, channels, height, width = input.shape
    # Each place is a row of channels. Rows of zeros surround the image.
    padded = np.zeros((batch, height + 2, width + 2, channels), input.dtype)
    padded[:, 1:-1, 1:-1] = np.moveaxis(input, 1, -1)
    rows = padded.reshape(-1, channels)
    samples = grid.reshape(batch, -1, 2)
    with np.errstate(all="ignore"):
        columns, part = _find_places(samples[..., 0], width, padding_mode, align_corners)
        lines, down = _find_places(samples[..., 1], height, padding_mode, align_corners)
    first = (np.arange(batch) * ((height + 2) * (width + 2)))[:, None]
    total = None
    for line, from_line in zip(lines, (1 - down, down), strict=True):
        line *= width + 2
        line += first
        for column, from_column in zip(columns, (1 - part, part), strict=True):
            piece = rows.take((line + column).reshape(-1), 0, mode="clip")
            share = (from_line * from_column).reshape(-1)
            # A column as operand takes as long as a product of rows of 32 numbers that repeats it.
            piece *= np.repeat(share, channels).reshape(piece.shape) if channels < _NARROW else share[:, None]
            if total is None:
                total = piece
            else:
                total += piece
    out = np.moveaxis(total.reshape(*grid.shape[:-1], channels), -1, 1)
    return total.reshape(out.shape) if out.flags.c_contiguous else copy_row_major(out)


def _find_places(position, size, padding_mode, align_corners):
    """Return the two places of each sample along one axis, counted from the border, and the share of the second."""
    at = position * at_factor(size, align_corners)
    at += (size - 1) / 2
    if padding_mode == "border":
        at = np.fmin(np.fmax(at, 0), size - 1)
    low = np.floor(at)
    part = at - low
    places = [np.clip(low + k, -1, size) + 1 for k in (0, 1)]
    return [place.astype(np.intp) for place in places], part


def at_factor(size, align_corners) -> float:
    """Return the elements of an image from its centre to the position 1."""
    return (size - 1) / 2 if align_corners else size / 2
