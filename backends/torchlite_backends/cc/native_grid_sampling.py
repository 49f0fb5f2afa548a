"""Native bilinear sampling of images on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.numpy.grid_sampling import at_factor, serves

from .native_kernel import TYPE_DEFINITIONS, make_kernel_per_dtype

_BLOCK = 256  # samples of an item

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
struct Given {
    const void *images, *grid; void* out; i64 channels, height, width, samples, blocks, border;
    double down, across;
};
// The places of a sample along one axis and their weights; a place outside of the image has none.
template <class T> static inline void find(T position, T factor, i64 size, i64 border, i64* places, T* weights,
    bool* inside) {
    T at = position * factor + (T)(size - 1) / 2;
    if (border) at = at > 0 ? at < size - 1 ? at : (T)(size - 1) : 0;
    const T low = std::floor(at), part = at - low;
    for (int k = 0; k < 2; k++) {
        const T place = low + k;
        inside[k] = place >= 0 && place <= size - 1;
        places[k] = inside[k] ? (i64)place : 0;
        weights[k] = k ? part : 1 - part;
    }
}
template <class T> static int sample(const Given& of, i64 begin, i64 end) {
    const i64 size = of.height * of.width;
    int32_t places[4][BLOCK];
    T weights[4][BLOCK], factors[4][BLOCK];
    for (i64 item = begin; item < end; item++) {
        const i64 image = item / of.blocks, start = item % of.blocks * BLOCK, n = least(BLOCK, of.samples - start);
        const T* grid = (const T*)of.grid + 2 * (image * of.samples + start);
        for (i64 s = 0; s < n; s++) {
            i64 columns[2], lines[2];
            T across[2], down[2];
            bool in_line[2], in_column[2];
            find<T>(grid[2 * s], of.across, of.width, of.border, columns, across, in_column);
            find<T>(grid[2 * s + 1], of.down, of.height, of.border, lines, down, in_line);
            for (int k = 0; k < 4; k++) {
                places[k][s] = (int32_t)(lines[k / 2] * of.width + columns[k % 2]);
                weights[k][s] = down[k / 2] * across[k % 2];
                factors[k][s] = in_line[k / 2] && in_column[k % 2];
            }
        }
        // What is outside counts as zero, whose product with a NaN is one; an infinite element there does not count.
        for (i64 c = 0; c < of.channels; c++) {
            const T* from = (const T*)of.images + (image * of.channels + c) * size;
            T* out = (T*)of.out + (image * of.channels + c) * of.samples + start;
            #pragma GCC ivdep
            for (i64 s = 0; s < n; s++) {
                const T a = from[places[0][s]], b = from[places[1][s]], c = from[places[2][s]], d = from[places[3][s]];
                out[s] = (factors[0][s] != 0 ? a : 0) * weights[0][s] + (factors[1][s] != 0 ? b : 0) * weights[1][s]
                    + (factors[2][s] != 0 ? c : 0) * weights[2][s] + (factors[3][s] != 0 ? d : 0) * weights[3][s];
            }
        }
    }
    return 0;
}
ENTRY_PER_DTYPE(sample, Given)
"""
).replace("BLOCK", str(_BLOCK))
_sample_kernels = make_kernel_per_dtype(_SOURCE, "sample", "QQQqqqqqqdd")


def _grid_sample(device: Any, input: Any, grid: Any, mode: Any, padding_mode: Any, align_corners: Any) -> Any:
    if not serves(input, grid, mode, padding_mode) or input.shape[2] * input.shape[3] >= 1 << 31:
        return None
    images, grid = np.ascontiguousarray(input), np.ascontiguousarray(grid)
    batch, channels, height, width = images.shape
    samples = grid.size // (2 * batch)
    out = np.empty((batch, channels, *grid.shape[1:-1]), images.dtype)
    blocks = -(-samples // _BLOCK)
    sizes = channels, height, width, samples, blocks, padding_mode == "border"
    factors = at_factor(height, align_corners), at_factor(width, align_corners)
    done = _sample_kernels[images.dtype](device, batch * blocks, 8 * out.nbytes, images, grid, out, *sizes, *factors)
    return out if done else None


kernels = {"_grid_sample": _grid_sample}
