"""Pooling of regions of interest (RoI): align, pool and their position-sensitive forms.

A bin is a weighted sum of rows and columns. The weights of a region are two small matrices made on the host, and the
bins are two matrix products. Gradients are the transposed products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op_spec import require


class _Regions:
    """Regions (K, 5) split into `bins` rows and columns: image number, covered rows and columns, and weights of
    each.
    """

    def __init__(self, like: Any, rois: Any, shape: tuple[int, int], weigh: Any) -> None:
        import torchlite as torch

        values = _rois_to_numpy(rois)
        self.images = values[:, 0].astype(np.int64).tolist()
        rows, columns = weigh(values, *shape)
        self.row_ends, self.column_ends = _nonzero_weight_ranges(rows), _nonzero_weight_ranges(columns)
        self.rows, self.columns = (
            torch.from_numpy(np.ascontiguousarray(m, values.dtype)).to(like.device, like.dtype) for m in (rows, columns)
        )

    def __iter__(self) -> Any:
        """Yield, for each region that overlaps its image, its number, position and two weight matrices."""
        for k, image in enumerate(self.images):
            (top, bottom), (left, right) = self.row_ends[k], self.column_ends[k]
            if top < bottom and left < right:
                place = (image, slice(top, bottom), slice(left, right))
                yield k, place, self.rows[k, :, top:bottom], self.columns[k, :, left:right]


def _check_rois(input: Any, rois: Any, where: str, words: str = "rois must") -> None:
    """Raise RuntimeError for regions of another shape or dtype."""
    require(rois.ndim == 2 and rois.shape[1] == 5, lambda: f"{words} have shape as Tensor[K, 5]")
    require(
        input.dtype == rois.dtype,
        lambda: (
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but "
            f"type {input.type()} does not equal {rois.type()} (while checking arguments for {where})"
        ),
    )


def _rois_to_numpy(rois: Any) -> np.ndarray:
    """Return the regions as a NumPy array."""
    values = rois.detach().cpu()
    return (values.float() if values.dtype.itemsize < 4 else values).numpy()


def _nonzero_weight_ranges(weights: np.ndarray) -> list:
    """Return, for each region, the first row with a weight and one past the last."""
    used = (weights != 0).any(1)
    first = used.argmax(1)
    last = used.shape[1] - used[:, ::-1].argmax(1)
    return np.stack([first, np.where(used.any(1), last, first)], 1).tolist()


def _sample_weights(start: np.ndarray, size: np.ndarray, bins: int, sampling: int, length: int) -> tuple:
    """Return the summed interpolation weights (K, bins, length) of sample points spread evenly over each bin, and the
    number of points per bin.
    """
    kind = start.dtype.type
    bin_size = size / kind(bins)
    grid = np.full(len(start), sampling) if sampling > 0 else np.ceil(size / kind(bins)).astype(np.int64)
    points = np.arange(max(grid.max(initial=0), 0), dtype=start.dtype)
    in_grid = points < grid[:, None]
    spread = (points + kind(0.5)) * bin_size[:, None] / np.maximum(grid, 1)[:, None].astype(start.dtype)
    corner = start[:, None] + np.arange(bins, dtype=start.dtype) * bin_size[:, None]
    at = corner[:, :, None] + spread[:, None, :]
    valid = in_grid[:, None, :] & (at >= -1) & (at <= length)
    at = np.clip(np.where(valid, at, 0), 0, length - 1)
    low = at.astype(np.int64)
    part = np.where(valid, at - low, 0).astype(np.float64)
    line = np.arange(at.shape[0] * bins).reshape(*at.shape[:2], 1) * length
    total = len(start) * bins * length
    weights = np.bincount((line + low).ravel(), (valid - part).ravel(), total)
    weights += np.bincount((line + np.minimum(low + 1, length - 1)).ravel(), part.ravel(), total)
    return weights.reshape(len(start), bins, length).astype(np.float64), grid  # integers if there are no regions


def _make_sample_weigher(
    scale: float, bins: tuple[int, int], sampling: int, offset: float, least: float | None, empty: float = 0.0
) -> Any:
    """Return `roi_align`'s weights: the mean of sample points in a bin. least: minimum height and width of a region.
    empty: weights of bins without points.
    """

    def weigh_samples(rois: np.ndarray, height: int, width: int) -> tuple:
        kind = rois.dtype.type
        x1, y1, x2, y2 = (rois[:, 1:] * kind(scale) - kind(offset)).T
        across, down = x2 - x1, y2 - y1
        if least is not None:
            across, down = np.maximum(across, kind(least)), np.maximum(down, kind(least))
        rows, per_row = _sample_weights(y1, down, bins[0], sampling, height)
        columns, per_column = _sample_weights(x1, across, bins[1], sampling, width)
        count = per_row * per_column
        rows /= np.maximum(count, 1)[:, None, None]
        rows[count == 0] = columns[count == 0] = empty
        return rows, columns

    return weigh_samples


def _bin_edges(start: np.ndarray, size: np.ndarray, bins: int, length: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return begin and end (K, bins each) of bins in whole pixels, clipped to `last`."""
    kind = np.float32
    bin_size = (size.astype(kind) / kind(bins))[:, None]
    places = np.arange(bins + 1, dtype=kind)
    low = np.floor(places[:-1] * bin_size).astype(np.int64) + start[:, None]
    high = np.ceil(places[1:] * bin_size).astype(np.int64) + start[:, None]
    return np.clip(low, 0, last), np.clip(high, 0, last)


def _round_corners(rois: np.ndarray, scale: float) -> np.ndarray:
    """Return corners rounded to pixels, halves away from zero."""
    scaled = rois[:, 1:] * rois.dtype.type(scale)
    return (np.sign(scaled) * np.floor(np.abs(scaled) + rois.dtype.type(0.5))).astype(np.int64).T


def _make_pixel_weigher(scale: float, bins: tuple[int, int], beyond: int) -> Any:
    """Return `ps_roi_pool`'s weights: the mean of a bin's pixels. beyond: 1 if bins include the image's last row and
    column, as torchvision does in the gradient only.
    """

    def weigh_along_axis(start: np.ndarray, end: np.ndarray, count: int, length: int) -> np.ndarray:
        low, high = _bin_edges(start, np.maximum(end - start, 1), count, length, length - 1 + beyond)
        pixels = np.arange(length)
        inside = (pixels >= low[..., None]) & (pixels < high[..., None])
        return inside / np.maximum(high - low, 1)[..., None]

    def weigh_pixels(rois: np.ndarray, height: int, width: int) -> tuple:
        x1, y1, x2, y2 = _round_corners(rois, scale)
        return weigh_along_axis(y1, y2, bins[0], height), weigh_along_axis(x1, x2, bins[1], width)

    return weigh_pixels


# -- all channels in every bin -----------------------------------------------------------------------


def _make_roi_align_regions(
    like: Any, rois: Any, shape: tuple, scale: float, bins: tuple, sampling: int, aligned: bool
) -> _Regions:
    weigh = _make_sample_weigher(scale, bins, sampling, 0.5 if aligned else 0.0, None if aligned else 1.0)
    return _Regions(like, rois, shape, weigh)


def roi_align(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Any:  # fmt: skip
    """Return interpolated means of each region's bins: (N, C, H, W) and (K, 5) to (K, C, bins, bins)."""
    import torchlite as torch

    _check_rois(input, rois, "roi_align_forward_kernel")
    bins = (pooled_height, pooled_width)
    regions = _make_roi_align_regions(input, rois, input.shape[2:], spatial_scale, bins, sampling_ratio, aligned)
    with torch.no_grad():
        images = input.permute(0, 2, 3, 1).contiguous()
        out = input.new_zeros((rois.shape[0], *bins, input.shape[1]))
        for k, place, rows, columns in regions:
            part = images[place]
            lines = (rows @ part.flatten(1)).reshape(pooled_height, *part.shape[1:])
            out[k] = columns @ lines
        return out.permute(0, 3, 1, 2).contiguous()


def roi_align_backward(
    grad: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int, channels: int,
    height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Any:  # fmt: skip
    """Return the gradient of the images."""
    import torchlite as torch

    bins = (pooled_height, pooled_width)
    regions = _make_roi_align_regions(grad, rois, (height, width), spatial_scale, bins, sampling_ratio, aligned)
    with torch.no_grad():
        out = grad.new_zeros((batch_size, height, width, channels))
        grads = grad.permute(0, 2, 3, 1).contiguous()
        for k, place, rows, columns in regions:
            lines = columns.t() @ grads[k]
            out[place] += (rows.t() @ lines.flatten(1)).reshape(rows.shape[1], *lines.shape[1:])
        return out.permute(0, 3, 1, 2).contiguous()


# -- position-sensitive: one channel per bin -------------------------------------------------------------


def _position_sensitive_channels(input: Any, bins: tuple) -> int:
    require(
        input.shape[1] % (bins[0] * bins[1]) == 0,
        lambda: "input channels must be a multiple of pooling height * pooling width",
    )
    return input.shape[1] // (bins[0] * bins[1])


def _pool_position_sensitive(input: Any, regions: _Regions, bins: tuple) -> tuple:
    """Return bins from images (N, C, H, W) with channels (output channels, bins, bins), and the channel of each bin."""
    import torchlite as torch

    channels = _position_sensitive_channels(input, bins)
    count = len(regions.images)
    mapping = torch.arange(input.shape[1], dtype=torch.int32, device=input.device).reshape(1, channels, *bins)
    with torch.no_grad():
        images = input.permute(0, 2, 3, 1).reshape(input.shape[0], *input.shape[2:], channels, *bins)
        out = input.new_zeros((count, channels, *bins))
        for k, place, rows, columns in regions:
            lines = (images[place] * rows.t()[:, None, None, :, None]).sum(0)
            out[k] = (lines * columns.t()[:, None, None, :]).sum(0)
    return out, mapping.expand(count, -1, -1, -1).contiguous()


def _pool_position_sensitive_backward(grad: Any, regions: _Regions, shape: tuple) -> Any:
    import torchlite as torch

    batch, channels, height, width = shape
    with torch.no_grad():
        out = grad.new_zeros((batch, height, width, *grad.shape[1:]))
        for k, place, rows, columns in regions:
            lines = grad[k] * columns.t()[:, None, None, :]
            out[place] += lines * rows.t()[:, None, None, :, None]
        return out.reshape(batch, height, width, channels).permute(0, 3, 1, 2).contiguous()


def ps_roi_align(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> Any:
    """Return interpolated means with one channel per bin, and the channels."""
    _check_rois(input, rois, "ps_roi_align_forward_kernel", "Tensor rois should")
    bins = (pooled_height, pooled_width)
    weigh = _make_sample_weigher(spatial_scale, bins, sampling_ratio, 0.5, None, empty=np.nan)
    return _pool_position_sensitive(input, _Regions(input, rois, input.shape[2:], weigh), bins)


def ps_roi_align_backward(
    grad: Any, rois: Any, channel_mapping: Any, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, batch_size: int, channels: int, height: int, width: int,
) -> Any:  # fmt: skip
    """Return the gradient of the images."""
    weigh = _make_sample_weigher(spatial_scale, (pooled_height, pooled_width), sampling_ratio, 0.5, None)
    regions = _Regions(grad, rois, (height, width), weigh)
    return _pool_position_sensitive_backward(grad, regions, (batch_size, channels, height, width))


def ps_roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """Return pixel means with one channel per bin, and the channels."""
    _check_rois(input, rois, "ps_roi_pool_forward_kernel", "Tensor rois should")
    bins = (pooled_height, pooled_width)
    regions = _Regions(input, rois, input.shape[2:], _make_pixel_weigher(spatial_scale, bins, 0))
    return _pool_position_sensitive(input, regions, bins)


def ps_roi_pool_backward(
    grad: Any, rois: Any, channel_mapping: Any, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Any:  # fmt: skip
    """Return the gradient of the images."""
    regions = _Regions(
        grad, rois, (height, width), _make_pixel_weigher(spatial_scale, (pooled_height, pooled_width), 1)
    )
    return _pool_position_sensitive_backward(grad, regions, (batch_size, channels, height, width))


# -- maximum -----------------------------------------------------------------------------------------


def roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """Return the maximum of each bin, 0 if empty, and its position in the image (int32, -1 if empty)."""
    import torchlite as torch

    _check_rois(input, rois, "roi_pool_forward_kernel", "Tensor rois should")
    height, width = input.shape[2:]
    values = _rois_to_numpy(rois)
    x1, y1, x2, y2 = _round_corners(values, spatial_scale)
    tops, bottoms = _bin_edges(y1, np.maximum(y2 - y1 + 1, 1), pooled_height, height, height)
    lefts, rights = _bin_edges(x1, np.maximum(x2 - x1 + 1, 1), pooled_width, width, width)
    shape = (rois.shape[0], input.shape[1], pooled_height, pooled_width)
    out, place = input.new_zeros(shape), torch.full(shape, -1, dtype=torch.int32, device=input.device)
    with torch.no_grad():
        for k, p, q in np.ndindex(shape[0], *shape[2:]):
            top, bottom, left, right = (int(e) for e in (tops[k, p], bottoms[k, p], lefts[k, q], rights[k, q]))
            if top < bottom and left < right:
                part = input[int(values[k, 0]), :, top:bottom, left:right].flatten(1)
                out[k, :, p, q], at = part.max(1)
                across = right - left
                place[k, :, p, q] = ((at // across + top) * width + at % across + left).int()
    return out, place


def roi_pool_backward(
    grad: Any, rois: Any, argmax: Any, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int,
) -> Any:  # fmt: skip
    """Return the gradient of the images: each bin's gradient goes to its maximum."""
    import torchlite as torch

    with torch.no_grad():
        plane = rois[:, 0].long()[:, None] * channels + torch.arange(channels, device=grad.device)
        place = plane[:, :, None, None] * (height * width) + argmax.clamp(min=0)
        out = grad.new_zeros(batch_size * channels * height * width)
        out.scatter_add_(0, place.flatten(), torch.where(argmax < 0, 0, grad).flatten())
        return out.reshape(batch_size, channels, height, width)
