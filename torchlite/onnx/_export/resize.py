"""Export rules of interpolation, grid sampling, im2col and col2im."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, translates


def _register_upsample(name: str, rank: int, has_corners: bool, antialias: bool, attributes: dict[str, Any]) -> None:
    """Register an op of interpolation in its two forms, of which `vec` has the factors in a list."""

    def write(w: OnnxGraphBuilder, x: WriterValue, size: Any, corners: bool, scales: Any) -> str:
        if antialias:
            return _add_antialiased(w, x, size, scales, rank, corners, name)
        given = dict(attributes)
        if has_corners:
            given["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel"
        return _add_resize(w, x, size, scales, rank, corners, given)

    if has_corners:

        @translates(f"aten.{name}.vec")
        def with_corners(w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, scales: Any) -> str:
            return write(w, x, size, align_corners, scales)

        @translates(f"aten.{name}")
        def with_corners_each(
            w: OnnxGraphBuilder, x: WriterValue, size: Any, align_corners: bool, a: Any = None, b: Any = None,
            c: Any = None,
        ) -> str:  # fmt: skip
            return write(w, x, size, align_corners, [a, b, c][:rank])

    else:

        @translates(f"aten.{name}.vec")
        def plain(w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any) -> str:
            return write(w, x, size, False, scales)

        @translates(f"aten.{name}")
        def plain_each(
            w: OnnxGraphBuilder, x: WriterValue, size: Any, a: Any = None, b: Any = None, c: Any = None
        ) -> str:
            return write(w, x, size, False, [a, b, c][:rank])


for _rank, _linear in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _register_upsample(
        f"upsample_nearest{_rank}d", _rank, False, False,
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    )  # fmt: skip
    _register_upsample(
        f"_upsample_nearest_exact{_rank}d", _rank, False, False,
        {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"},
    )  # fmt: skip
    _register_upsample(f"upsample_{_linear}{_rank}d", _rank, True, False, {"mode": "linear"})
_register_upsample("upsample_bicubic2d", 2, True, False, {"mode": "cubic", "cubic_coeff_a": -0.75})
_register_upsample("_upsample_bilinear2d_aa", 2, True, True, {})
_register_upsample("_upsample_bicubic2d_aa", 2, True, True, {})


def _add_antialiased(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any, rank: int, corners: bool, name: str
) -> str:
    """Multiply by the filter's weights along each dimension. Resize of ONNX treats the edges in another way."""
    out: Any = x
    for i in range(rank):
        dim = x.ndim - rank + i
        old, factor = x.sizes[dim], None if scales is None else scales[i]
        if old is None:
            raise OnnxExporterError("interpolate: antialias of images of no fixed size")
        new = int(size[i]) if size is not None or factor is None else math.floor(old * factor)
        weights = _antialias_weights(old, new, factor, corners, "cubic" in name)
        order = list(range(x.ndim))
        order[dim], order[-1] = order[-1], order[dim]
        turned = out if dim == x.ndim - 1 else w.permute(out, order)
        out = w.op("MatMul", turned, w.constant(weights, x.dtype))
        out = out if dim == x.ndim - 1 else w.permute(out, order)
    return w.put(out)


def _antialias_weights(old: int, new: int, factor: float | None, corners: bool, cubic: bool) -> np.ndarray:
    """Return the weights of old elements in new ones: a filter as wide as the step, which adds to one."""
    if corners:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
    else:
        step = 1 / factor if factor else old / new
    wide = max(step, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    weights = np.zeros((old, new))
    for j in range(new):
        center = step * (j + 0.5)
        begin = max(int(center - support + 0.5), 0)
        end = min(int(center + support + 0.5), old)
        apart = np.abs((np.arange(begin, end) - center + 0.5) / wide)
        found = _cubic_filter(apart) if cubic else np.maximum(1 - apart, 0)
        weights[begin:end, j] = found / found.sum()
    return weights


def _cubic_filter(apart: np.ndarray, a: float = -0.5) -> np.ndarray:
    near = ((a + 2) * apart - (a + 3)) * apart * apart + 1
    far = (((apart - 5) * apart + 8) * apart - 4) * a
    return np.where(apart < 1, near, np.where(apart < 2, far, 0))


def _add_resize(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, scales: Any, rank: int, corners: bool, attributes: dict[str, Any]
) -> str:
    """Add Resize by factors, or by sizes where there are none.

    A node by sizes takes size / old size as the factor of the coordinates, PyTorch the factor that it was called with.
    """
    factors = None if scales is None or any(f is None for f in scales) else [float(f) for f in scales]
    if size is None or factors is not None and _counts(x, size, factors, rank):
        return w.op("Resize", x, None, w.constant([1, 1, *(factors or [])], "float32"), **attributes)
    if factors is not None and not corners:
        raise OnnxExporterError(f"interpolate: factors {factors} whose sizes are not those of ONNX's Resize")
    whole = w.op("Concat", w.op("Shape", x, end=2), w.ints(list(size)), axis=0)
    return w.op("Resize", x, None, None, whole, **attributes)


def _counts(x: WriterValue, size: Any, factors: list[float], rank: int) -> bool:
    """True if sizes are those that the factors give."""
    old = x.sizes[x.ndim - rank :]
    return all(n is None or math.floor(n * f) == new for n, f, new in zip(old, factors, size, strict=True))


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
    if x.ndim == 3:
        whole = WriterValue(w.unsqueeze(x, 0), x.dtype, (1, *x.sizes))
        return w.squeeze(im2col(w, whole, kernel, dilation, padding, stride), 0)
    (kh, kw), count = kernel, x.sizes[1]
    eye = np.tile(np.eye(kh * kw).reshape(kh * kw, 1, kh, kw), (count or 1, 1, 1, 1))
    out = w.op("Conv", x, w.constant(eye, x.dtype), group=count, dilations=list(dilation), strides=list(stride),
               pads=list(padding) * 2, kernel_shape=[kh, kw])  # fmt: skip
    return w.op("Reshape", out, w.constant([0, (count or 1) * kh * kw, -1], "int64"))


@translates("aten.col2im")
def col2im(
    w: OnnxGraphBuilder, x: WriterValue, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> str:
    value = w.unsqueeze(x, 0) if x.ndim == 2 else x
    out = w.op("Col2Im", value, w.ints(list(size)), w.ints(list(kernel)), dilations=list(dilation),
                pads=list(padding) * 2, strides=list(stride))  # fmt: skip
    return w.squeeze(out, 0) if x.ndim == 2 else out
