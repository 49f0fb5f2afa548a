"""ONNX image and box ops."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .op_registry import Ints, Number, ints, op, single_number
from .resource_limits import check_elements, check_steps, check_work


@op("GridSample")
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    check_elements(
        "GridSample", x.shape[0], x.shape[1], *grid.shape[1:-1], each=64 if mode in ("cubic", "bicubic") else 4
    )
    grid = grid.to(x.dtype)
    if x.ndim == 3:
        flat = torch.stack([grid[..., 0], torch.zeros_like(grid[..., 0])], -1).unsqueeze(1)
        return F.grid_sample(x.unsqueeze(2), flat, name, padding_mode, bool(align_corners)).squeeze(2)
    return F.grid_sample(x, grid, name, padding_mode, bool(align_corners))


@op("AffineGrid")
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    sizes = ints(size) or []
    check_elements("AffineGrid", *sizes[:1], *sizes[2:], max(len(sizes), 1))
    return F.affine_grid(theta, sizes, align_corners=bool(align_corners))


def _bilinear_neighbours(image: Tensor, y: Tensor, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the four neighbours of positions in an image (channels, height, width), and their weights."""
    height, width = image.shape[1:]
    inside = ((y >= -1) & (y <= height) & (x >= -1) & (x <= width)).to(image.dtype)
    y, x = torch.clamp(y, 0, height - 1), torch.clamp(x, 0, width - 1)
    top, left = torch.floor(y), torch.floor(x)
    below, right = torch.clamp(top + 1, max=height - 1), torch.clamp(left + 1, max=width - 1)
    down, across = y - top, x - left
    flat = image.reshape(image.shape[0], -1)
    values = [
        flat[:, (a * width + b).to(torch.int64).reshape(-1)].reshape(-1, *y.shape)
        for a in (top, below)
        for b in (left, right)
    ]
    weights = [(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across]
    return values, [w * inside for w in weights]


def _roi_align(
    x: Tensor, rois: Tensor, images: Tensor, mode: str, rows: int, columns: int, ratio: int, scale: float, shift: float
) -> Tensor:
    out = []
    check_elements("RoiAlign", rois.shape[0], x.shape[1], rows, columns)
    check_steps("RoiAlign", 32 * rois.shape[0])
    for box, image in zip(rois.tolist(), images.tolist(), strict=True):
        x1, y1, x2, y2 = (v * scale - shift for v in box)
        wide, high = x2 - x1, y2 - y1
        if not shift:
            wide, high = max(wide, 1.0), max(high, 1.0)
        down, across = high / rows, wide / columns
        if not math.isfinite(down + across):
            raise ValueError(f"RoiAlign: a region of {high} by {wide}")
        steps_y, steps_x = (ratio, ratio) if ratio > 0 else (math.ceil(down), math.ceil(across))
        # Per sample: four neighbours of every channel, and their weights.
        check_work(
            "RoiAlign", check_elements("RoiAlign", 8 * x.shape[1], rows * max(steps_y, 0), columns * max(steps_x, 0))
        )
        y = y1 + (torch.arange(rows * steps_y, device=x.device) + 0.5) * (down / max(steps_y, 1))
        z = x1 + (torch.arange(columns * steps_x, device=x.device) + 0.5) * (across / max(steps_x, 1))
        yy, xx = (part.to(x.dtype) for part in torch.meshgrid(y, z, indexing="ij"))
        values, weights = _bilinear_neighbours(x[image], yy, xx)
        cells = (x.shape[1], rows, steps_y, columns, steps_x)
        if mode == "avg":
            taken: Any = sum(v * w for v, w in zip(values, weights, strict=True))
            out.append(taken.reshape(cells).mean((2, 4)))
        else:
            best = torch.stack([v * w for v, w in zip(values, weights, strict=True)]).amax(0)
            out.append(best.reshape(cells).amax((2, 4)))
    return torch.stack(out) if out else x.new_zeros(0, x.shape[1], rows, columns)


@op("RoiAlign")
def roi_align_opset10(
    x: Tensor, rois: Tensor, images: Tensor, *, mode: str = "avg", output_height: int = 1, output_width: int = 1,
    sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    return _roi_align(x, rois, images, mode, output_height, output_width, sampling_ratio, spatial_scale, 0.0)


@op("RoiAlign", since=16)
def roi_align(
    x: Tensor, rois: Tensor, images: Tensor, *, coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    return _roi_align(x, rois, images, mode, output_height, output_width, sampling_ratio, spatial_scale, shift)


@op("NonMaxSuppression")
def non_max_suppression(
    boxes: Tensor, scores: Tensor, most: Number = None, overlap: Number = None, least: Number = None, *,
    center_point_box: int = 0,
) -> Tensor:  # fmt: skip
    limit = int(single_number(most) or 0)
    threshold, floor = float(single_number(overlap) or 0.0), single_number(least)
    corners = boxes.detach().cpu().numpy()
    if center_point_box:
        x, y, w, h = (corners[..., i] for i in range(4))
        corners = np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    low = np.minimum(corners[..., :2], corners[..., 2:])
    high = np.maximum(corners[..., :2], corners[..., 2:])
    values, found = scores.detach().cpu().numpy(), []
    for image in range(values.shape[0]):
        for kind in range(values.shape[1]):
            check_steps("NonMaxSuppression", 8)
            kept = _suppress_boxes(low[image], high[image], values[image, kind], limit, threshold, floor)
            found += [(image, kind, i) for i in kept]
    return torch.tensor(found, dtype=torch.int64, device=boxes.device).reshape(-1, 3)


def _suppress_boxes(low: Any, high: Any, scores: Any, limit: int, threshold: float, floor: Any) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    if floor is not None:
        order = order[scores[order] > floor]
    area = np.prod(high - low, -1)
    kept: list[int] = []
    while order.size and len(kept) < limit:
        check_steps("NonMaxSuppression", 8)
        check_work("NonMaxSuppression", 32 * order.size)
        first, order = int(order[0]), order[1:]
        kept.append(first)
        cut = np.minimum(high[first], high[order]) - np.maximum(low[first], low[order])
        common = np.prod(np.maximum(cut, 0), -1)
        union = area[first] + area[order] - common
        ratio = np.divide(common, union, out=np.zeros_like(common), where=(union > 0) & (common > 0))
        order = order[ratio <= threshold]
    return kept


# ONNX's formats. Other Pillow readers may start programs.
_FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")


@op("ImageDecoder")
def image_decoder(data: Tensor, *, pixel_format: str = "RGB") -> Tensor:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("ImageDecoder needs the package pillow: pip install pillow") from None
    image = Image.open(io.BytesIO(data.cpu().numpy().tobytes()), formats=_FORMATS)
    check_elements("ImageDecoder", *image.size, 4)
    if pixel_format == "Grayscale":
        return torch.from_numpy(np.array(image.convert("L"))[:, :, None].copy())
    array = np.array(image.convert("RGB") if image.mode != "RGB" else image)
    return torch.from_numpy((array[:, :, ::-1] if pixel_format == "BGR" else array).copy())
