"""Export rules of interpolation, grid sampling, im2col and col2im."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph_builder import OnnxGraphBuilder, WriterValue, translates


@translates("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def interpolate_nearest(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any = None, *rest: Any) -> str:
    return _add_resize(w, x, size, scales, rest, mode="nearest", coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")  # fmt: skip


@translates("aten._upsample_nearest_exact1d", "aten._upsample_nearest_exact2d", "aten._upsample_nearest_exact3d")
def interpolate_nearest_exact(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any = None, *rest: Any) -> str:
    return _add_resize(w, x, size, scales, rest, mode="nearest", coordinate_transformation_mode="half_pixel",
                   nearest_mode="round_prefer_ceil")  # fmt: skip


@translates(
    "aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d", "aten._upsample_bilinear2d_aa"
)
def interpolate_linear(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, scales: Any = None, *rest: Any
) -> str:
    way = "align_corners" if align_corners else "pytorch_half_pixel"
    return _add_resize(w, x, size, scales, rest, mode="linear", coordinate_transformation_mode=way)


@translates("aten.upsample_bicubic2d", "aten._upsample_bicubic2d_aa")
def interpolate_cubic(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, scales: Any = None, *rest: Any
) -> str:
    way = "align_corners" if align_corners else "pytorch_half_pixel"
    return _add_resize(w, x, size, scales, rest, mode="cubic", coordinate_transformation_mode=way, cubic_coeff_a=-0.75)


def _add_resize(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any, rest: tuple, **attributes: Any) -> str:
    if size is not None:
        whole = w.op("Concat", w.op("Shape", x, end=2), w.ints(list(size)), axis=0)
        return w.op("Resize", x, None, None, whole, **attributes)
    factors = list(scales) if isinstance(scales, (list, tuple)) else [scales, *rest]
    return w.op("Resize", x, None, w.constant([1, 1, *factors], "float32"), **attributes)


@translates("aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def grid_sampler(
    w: OnnxGraphBuilder, x: WriterValue, grid: WriterValue, mode: int, padding: int, align_corners: bool
) -> str:
    modes = ("linear", "nearest", "cubic") if w.version >= 20 else ("bilinear", "nearest", "bicubic")
    return w.op("GridSample", x, grid, mode=modes[mode], padding_mode=("zeros", "border", "reflection")[padding],
                align_corners=int(align_corners))  # fmt: skip


@translates("aten.im2col")
def im2col(w: OnnxGraphBuilder, x: WriterValue, kernel: Any, dilation: Any, padding: Any, stride: Any) -> str:
    """Unfold windows by a convolution with one-hot kernels."""
    (kh, kw), count = kernel, x.sizes[1]
    eye = np.tile(np.eye(kh * kw).reshape(kh * kw, 1, kh, kw), (count or 1, 1, 1, 1))
    out = w.op("Conv", x, w.constant(eye, x.dtype), group=count, dilations=list(dilation), strides=list(stride),
               pads=list(padding) * 2, kernel_shape=[kh, kw])  # fmt: skip
    return w.op("Reshape", out, w.constant([0, (count or 1) * kh * kw, -1], "int64"))


@translates("aten.col2im")
def col2im(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> str:
    return w.op("Col2Im", x, w.ints(list(size)), w.ints(list(kernel)), dilations=list(dilation),
                pads=list(padding) * 2, strides=list(stride))  # fmt: skip
