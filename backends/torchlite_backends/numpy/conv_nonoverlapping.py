"""Convolution with non-overlapping windows (stride at least the kernel size), like a vision transformer's patch
embedding.

Every element of the image is in at most one window, so im2col is a permutation of the image, and invertible.
"""

from __future__ import annotations

import math

import numpy as np

from .cache_blocking import get_scratch_buffer, parallel_for, parallel_sum
from .deterministic_gemm import deterministic_matmul

# Minimum elements of a kernel row (copies of shorter ones are slow), and for the backward pass. (Zen 4, two threads:
# 16x16 patches take 0.56 of the time of other algorithms, 8x8 ones 0.5 to 1, 4x4 ones 0.8 to 1.2; backward 0.14, 0.2
# and 0.65.)
_ROW, _ROW_BACK = 8, 4
# Minimum images for one thread per image; with fewer the products are split.
_MANY = 4


def is_faster(plan, dtype, row=_ROW) -> bool:
    """True if this algorithm is faster."""
    return (
        plan.groups == 1
        and plan.kernel == plan.stride
        and plan.kernel[-1] >= row
        and max(plan.padding) == 0
        and max(plan.dilation) == 1
        and dtype.kind == "f"
    )


def is_faster_transposed(plan, dtype) -> bool:
    """True if `conv_transpose` is faster than other algorithms."""
    return is_faster(plan, dtype, _ROW_BACK)


def _for_each_image(body, plan):
    """Call `body(image, product)` for all images, with the function for their matrix products."""
    if plan.batch >= _MANY:
        parallel_for(body, [(k, np.matmul) for k in range(plan.batch)])
    else:
        for k in range(plan.batch):
            body(k, deterministic_matmul)


def _view_patches(images, plan):
    """View the patches of (images, channels, *size) as (images, *out, channels, *kernel)."""
    spatial = len(plan.size)
    inside = tuple(slice(n * k) for n, k in zip(plan.out, plan.kernel, strict=True))
    pairs = [n for pair in zip(plan.out, plan.kernel, strict=True) for n in pair]
    split = images[(slice(None), slice(None), *inside)].reshape((*images.shape[:2], *pairs))
    return split.transpose(0, *range(2, 2 + 2 * spatial, 2), 1, *range(3, 2 + 2 * spatial, 2))


def _gather_patch_rows(images, plan):
    """Return the patches as rows in scratch memory: (images * positions, channels * taps)."""
    patches = _view_patches(images, plan)
    rows = get_scratch_buffer(0, patches.shape, images.dtype)
    np.copyto(rows, patches)
    return rows.reshape(len(images) * plan.places, -1)


def conv_forward(x, weight, bias, plan, out):
    """Forward pass into `out`."""
    matrix, results = weight.reshape(plan.filters, -1), out.reshape(plan.batch, plan.filters, plan.places)

    def convolve_image(k, product):
        product(matrix, _gather_patch_rows(x[k : k + 1], plan).T, results[k])
        if bias is not None:
            results[k] += bias[:, None]

    _for_each_image(convolve_image, plan)
    return out


def conv_transpose(g, weight, plan, out):
    """Transpose of `conv_forward`, without a bias, into `out`."""
    matrix, gradients = weight.reshape(plan.filters, -1), g.reshape(plan.batch, plan.filters, plan.places)
    shape = (1, *plan.out, plan.channels, *plan.kernel)
    whole = all(n == o * k for n, o, k in zip(plan.size, plan.out, plan.kernel, strict=True))

    def convolve_image(k, product):
        rows = get_scratch_buffer(0, (plan.places, matrix.shape[1]), g.dtype)
        product(gradients[k].T, matrix, rows)
        if not whole:
            out[k] = 0
        _view_patches(out[k : k + 1], plan)[...] = rows.reshape(shape)

    _for_each_image(convolve_image, plan)
    return out


def weight_gradient(g, x, gradient, plan):
    """Gradient of the weight into `gradient`."""
    gradients = g.reshape(plan.batch, plan.filters, plan.places)

    def sum_images(images):
        first, last = images[0], images[-1] + 1
        rows = _gather_patch_rows(x[first:last], plan)
        columns = get_scratch_buffer(1, (plan.filters, last - first, plan.places), g.dtype)
        np.copyto(columns, gradients[first:last].swapaxes(0, 1))
        return deterministic_matmul(columns.reshape(plan.filters, len(rows)), rows)

    gradient.reshape(plan.filters, math.prod(gradient.shape[1:]))[...] = parallel_sum(
        sum_images, list(range(plan.batch)), gradient.size
    )
    return gradient
