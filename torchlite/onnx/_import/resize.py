"""ONNX Resize and Upsample: separable interpolation with coordinates computed on the host."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .op_registry import Floats, Ints, floats, ints, normalize_dims, op
from .resource_limits import check_elements, check_work


class ResizeOptions(NamedTuple):
    """Options of the interpolation."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    outside: float = 0.0


def _source_coordinates(n: int, count: int, scale: float, roi: tuple[float, float], way: str) -> np.ndarray:
    """Return the source coordinates of output elements."""
    at, length = np.arange(count, dtype=np.float64), scale * n
    if way == "align_corners":
        return np.zeros(count) if length == 1 else at * (n - 1) / (length - 1)
    if way == "asymmetric":
        return at / scale
    if way == "tf_crop_and_resize":
        begin, end = roi
        step = at * (end - begin) * (n - 1) / (length - 1) if length != 1 else (end - begin) * (n - 1) / 2 + 0 * at
        return step + begin * (n - 1)
    if way == "pytorch_half_pixel" and length == 1:
        return np.full(count, -0.5)
    moved = n / 2 * (1 - count / length) if way == "half_pixel_symmetric" else 0
    if way == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if way not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        raise ValueError(f"Resize: there is no way {way!r} from new to old coordinates")
    return moved + (at + 0.5) / scale - 0.5


def _interpolation_kernel(x: np.ndarray, mode: str, a: float) -> np.ndarray:
    x = np.abs(x)
    if mode == "linear":
        return np.maximum(1 - x, 0)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _round_nearest(source: np.ndarray, rule: str) -> np.ndarray:
    if rule == "floor":
        return np.floor(source)
    if rule == "ceil":
        return np.ceil(source)
    if rule == "round_prefer_ceil":
        return np.floor(source + 0.5)
    return np.ceil(source - 0.5)


def _find_neighbours(
    n: int, count: int, scale: float, roi: tuple[float, float], way: ResizeOptions
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return, for each output element, its source indices, weights, and whether it is out of range."""
    source = _source_coordinates(n, count, scale, roi, way.coordinates)
    outside = None
    if way.coordinates == "tf_crop_and_resize":
        outside = (source < 0) | (source > n - 1)
    if way.mode == "nearest":
        return np.clip(_round_nearest(source, way.nearest), 0, n - 1)[:, None], np.ones((count, 1)), outside
    shrink = min(scale, 1.0) if way.antialias else 1.0
    reach = math.ceil((1 if way.mode == "linear" else 2) / shrink)
    places = np.floor(source)[:, None] + np.arange(1 - reach, reach + 1)
    weights = _interpolation_kernel((places - source[:, None]) * shrink, way.mode, way.cubic)
    if way.exclude_outside:
        weights = np.where((places < 0) | (places > n - 1), 0, weights)
    if way.antialias or way.exclude_outside:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, n - 1), weights, outside


def _resize_dim(x: Tensor, d: int, count: int, scale: float, roi: tuple[float, float], way: ResizeOptions) -> Tensor:
    n = x.shape[d]
    if count == 0 or n == 0:
        return x.new_zeros([count if i == d else size for i, size in enumerate(x.shape)])
    places, weights, outside = _find_neighbours(n, count, scale, roi, way)
    shape = [count if i == d else 1 for i in range(x.ndim)]
    kind = x.dtype if x.is_floating_point() else torch.float32

    def column(values: np.ndarray, dtype: Any) -> Tensor:
        return torch.tensor(values, device=x.device).to(dtype)

    out: Any = None
    if way.mode == "nearest":
        out = torch.index_select(x, d, column(places[:, 0], torch.int64))
    else:
        for i in range(places.shape[1]):
            part = torch.index_select(x, d, column(places[:, i], torch.int64)).to(kind)
            part = part * column(weights[:, i], kind).reshape(shape)
            out = part if out is None else out + part
    if outside is not None and outside.any():
        out = torch.where(column(outside, torch.bool).reshape(shape), torch.full_like(out, way.outside), out)
    return out


def _interpolate_by_torch(x: Tensor, sizes: list[int], scales: list[float], way: ResizeOptions) -> Tensor | None:
    """Interpolate by torch's function where it is equivalent."""
    changed = [d for d in range(x.ndim) if sizes[d] != x.shape[d]]
    rank = x.ndim - 2
    exact = all(scales[d] * x.shape[d] == sizes[d] for d in range(x.ndim))
    if rank not in (1, 2, 3) or not exact or changed and changed[0] < 2 or not x.is_floating_point() or way.antialias:
        return None
    if way.exclude_outside or not changed or 0 in sizes:
        return None
    if way.mode == "nearest" and way.coordinates == "asymmetric" and way.nearest == "floor":
        return F.interpolate(x, sizes[2:], mode="nearest")
    pixel = way.coordinates == "half_pixel" or way.coordinates == "pytorch_half_pixel" and min(sizes[2:]) > 1
    name = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank] if way.mode == "linear" else "bicubic"
    if way.mode == "nearest" or way.mode == "cubic" and (rank != 2 or way.cubic != -0.75):
        return None
    if pixel or way.coordinates == "align_corners":
        return F.interpolate(x, sizes[2:], mode=name, align_corners=not pixel)
    return None


def _resize_tensor(
    x: Tensor, sizes: list[int], scales: list[float], rois: list[tuple[float, float]], way: ResizeOptions
) -> Tensor:
    for d in range(x.ndim):  # one dimension after another
        check_elements("Resize", *sizes[: d + 1], *x.shape[d + 1 :])
        if way.antialias and way.mode != "nearest":
            reach = 2 * math.ceil(2 / min(scales[d], 1.0)) if scales[d] > 0 else 0
            check_elements("Resize", sizes[d], reach, each=8)
            check_work("Resize", reach * math.prod((*sizes[: d + 1], *x.shape[d + 1 :])))
    found = _interpolate_by_torch(x, sizes, scales, way)
    if found is not None:
        return found
    out = x
    for d in range(x.ndim):
        if sizes[d] != x.shape[d] or scales[d] != 1 or way.coordinates == "tf_crop_and_resize" and rois[d] != (0, 1):
            out = _resize_dim(out, d, sizes[d], scales[d], rois[d], way)
    return out if out.dtype is x.dtype else _cast_back(out, x.dtype)


def _cast_back(out: Tensor, dtype: Any) -> Tensor:
    info = torch.iinfo(dtype)
    return torch.clamp(torch.round(out), info.min, info.max).to(dtype)


@op("Upsample")
def upsample(
    x: Tensor, scales: Floats = None, *, mode: str = "nearest", height_scale: float | None = None,
    width_scale: float | None = None,
) -> Tensor:  # fmt: skip
    factors = floats(scales) if scales is not None else [1.0, 1.0, height_scale or 1.0, width_scale or 1.0]
    sizes = [math.floor(n * f) for n, f in zip(x.shape, factors or [], strict=True)]
    way = ResizeOptions({"bilinear": "linear"}.get(mode, mode), "asymmetric", "floor")
    return _resize_tensor(x, sizes, factors or [], [(0, 1)] * x.ndim, way)


@op("Resize")
def resize_opset10(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor:
    return upsample(x, scales, mode=mode)


@op("Resize", since=11)
def resize(
    x: Tensor, roi: Floats = None, scales: Floats = None, sizes: Ints = None, *, antialias: int = 0, axes: Ints = None,
    coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
    extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:  # fmt: skip
    dims = list(range(x.ndim)) if axes is None else normalize_dims(axes, x.ndim)
    factors, whole = floats(scales) or [], ints(sizes) or []
    old = [x.shape[d] for d in dims]
    if whole:
        ratios = [new / n for new, n in zip(whole, old, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            one = min(ratios) if keep_aspect_ratio_policy == "not_larger" else max(ratios)
            ratios = [one] * len(dims)
            whole = [math.floor(n * one + 0.5) for n in old]
    else:
        ratios = factors
        whole = [math.floor(n * f) for n, f in zip(old, factors, strict=True)]
    region = floats(roi) or [0.0] * len(dims) + [1.0] * len(dims)
    at = {d: i for i, d in enumerate(dims)}
    way = ResizeOptions(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(antialias), bool(exclude_outside),
        extrapolation_value,
    )  # fmt: skip
    every = range(x.ndim)
    return _resize_tensor(
        x,
        [whole[at[d]] if d in at else x.shape[d] for d in every],
        [ratios[at[d]] if d in at else 1.0 for d in every],
        [(region[at[d]], region[at[d] + len(dims)]) if d in at else (0.0, 1.0) for d in every],
        way,
    )
