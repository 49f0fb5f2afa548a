"""ONNX convolution and pooling ops."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .lazy_functions import torch_function
from .op_registry import Ints, ints, op
from .resource_limits import check_elements, check_objects, check_products, check_steps, check_work

_MIN_EFFICIENT_FILTERS = 8  # filters; with fewer, a matrix product is inefficient
_MAX_SPATIAL_DIMS = 128  # of a kernel; not a matrix product then
_PLACE = 256  # work per window position, in elements; pooling loops over these
_TORCH_DIMS = (1, 2, 3)  # for which torch has functions


def resolve_padding(
    auto: str, pads: Ints, sizes: Any, kernel: list[int], strides: list[int], dilations: list[int]
) -> tuple[list[int], list[int]]:
    """Return the padding before and after each dimension."""
    rank = len(kernel)
    if auto in ("NOTSET", "", None):
        both = pads or [0] * 2 * rank
        return list(both[:rank]), list(both[rank:])
    if auto == "VALID":
        return [0] * rank, [0] * rank
    begin, end = [], []
    for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        missing = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        small, large = missing // 2, missing - missing // 2
        begin.append(small if auto == "SAME_UPPER" else large)
        end.append(large if auto == "SAME_UPPER" else small)
    return begin, end


def allow_padded(what: str, x: Tensor, begin: list[int], end: list[int]) -> None:
    """Check the size of a tensor with padding."""
    sizes = (max(n + a + b, 1) for n, a, b in zip(x.shape[2:], begin, end, strict=True))
    check_elements(what, x.shape[0], x.shape[1], *sizes)


def to_torch_padding(begin: list[int], end: list[int]) -> list[int]:
    """Return padding in `F.pad`'s order, last dimension first."""
    return [n for pair in zip(reversed(begin), reversed(end), strict=True) for n in pair]


def convolution_geometry(
    x: Tensor, w: Tensor, auto_pad: str, dilations: Ints, group: int, pads: Ints, strides: Ints
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Check the size of a convolution. Return its strides, padding at the beginning and the end, and dilations."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    begin, end = resolve_padding(auto_pad, pads, x.shape[2:], list(w.shape[2:]), strides, dilations)
    allow_padded("Conv", x, begin, end)
    reach = [(k - 1) * d for k, d in zip(w.shape[2:], dilations, strict=True)]
    spans = zip(x.shape[2:], begin, end, reach, strides, strict=True)
    counts = (max((n + a + b - r - 1) // s + 1, 0) if s > 0 else 0 for n, a, b, r, s in spans)
    count = check_elements("Conv", x.shape[0], w.shape[0], *counts) * 2 * math.prod(w.shape[1:])
    check_products("Conv", count, x, _products_per_element(w, w.shape[0] // max(group, 1)))
    if rank not in _TORCH_DIMS:
        raise NotImplementedError(f"Conv: {rank} dimensions of windows")
    return strides, begin, end, dilations


@op("Conv")
def conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    strides, begin, end, dilations = convolution_geometry(x, w, auto_pad, dilations, group, pads, strides)
    if begin != end:
        x, begin = F.pad(x, to_torch_padding(begin, end)), [0] * len(begin)
    return torch_function(f"F.conv{len(begin)}d")(_with_row_major_strides(x), w, b, strides, begin, dilations, group)


def _with_row_major_strides(x: Tensor) -> Tensor:
    """Return row-major images with row-major strides. A permuted image of one channel is row-major, but its strides are
    also those of channels last. PyTorch's later results would have channels last then, and each would be transposed.
    """
    if not x.is_contiguous() or x.stride(1) >= math.prod(x.shape[2:]):
        return x
    return x.reshape(-1).reshape(x.shape)


def _products_per_element(w: Tensor, filters: int) -> int:
    """Return how many products of a convolution cost as much as an element. Few filters reuse each window less."""
    if max(w.shape[2:], default=1) >= _MAX_SPATIAL_DIMS:
        return 2
    return (64 if filters >= _MIN_EFFICIENT_FILTERS else 8) // max(w.dtype.itemsize // 4, 1)


@op("ConvTranspose")
def conv_transpose(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, output_padding: Ints = None, output_shape: Ints = None, pads: Ints = None,
    strides: Ints = None,
) -> Tensor:  # fmt: skip
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra, kernel = output_padding or [0] * rank, list(w.shape[2:])
    begin, end = list((pads or [0] * 2 * rank)[:rank]), list((pads or [0] * 2 * rank)[rank:])
    whole = [
        s * (n - 1) + e + (k - 1) * d + 1
        for n, s, e, k, d in zip(x.shape[2:], strides, extra, kernel, dilations, strict=True)
    ]
    check_elements("ConvTranspose", x.shape[0], w.shape[1] * group, *(max(n, 1) for n in whole))
    check_objects("ConvTranspose", math.prod(kernel))  # positions of the kernel, one at a time
    check_steps("ConvTranspose", 8 * math.prod(kernel))
    check_products("ConvTranspose", x.numel() * 2 * math.prod(w.shape[1:]), x, _products_per_element(w, w.shape[1]))
    target = output_shape[-rank:] if output_shape else None
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and target is None:
        target = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    if target is not None:
        total = [a - b for a, b in zip(whole, target, strict=True)]
        begin = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total]
        end = [t - a for t, a in zip(total, begin, strict=True)]
        check_elements("ConvTranspose", x.shape[0], w.shape[1] * group, *(max(n, 1) for n in target))
    if (
        begin == end
        and min(begin) >= 0
        and all(e < max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True))
    ):
        return torch_function(f"F.conv_transpose{rank}d")(x, w, b, strides, begin, extra, group, dilations)
    out = torch_function(f"F.conv_transpose{rank}d")(x, w, b, strides, [0] * rank, [0] * rank, group, dilations)
    # Output padding pads the input with zeros; negative padding crops.
    return F.pad(out, to_torch_padding([-n for n in begin], [e - n for e, n in zip(extra, end, strict=True)])) if (
        b is None or not any(extra)) else _pad_with_bias(out, b, begin, end, extra)  # fmt: skip


def _pad_with_bias(out: Tensor, b: Tensor, begin: list[int], end: list[int], extra: list[int]) -> Tensor:
    bias = b.reshape(-1, *[1] * len(begin))
    return (
        F.pad(out - bias, to_torch_padding([-n for n in begin], [e - n for e, n in zip(extra, end, strict=True)]))
        + bias
    )


@op("DeformConv")
def deform_conv(
    x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, offset_group: int = 1, pads: Ints = None,
    strides: Ints = None,
) -> Tensor:  # fmt: skip
    n, c, height, width = x.shape
    kh, kw = w.shape[2:]
    rows, columns = offset.shape[2:]
    sh, sw = strides or [1, 1]
    dh, dw = dilations or [1, 1]
    top, left = (pads or [0] * 4)[:2]
    count = check_elements("DeformConv", n, c, kh * kw, rows, columns, each=4)
    check_elements("DeformConv", n, w.shape[0], rows, columns)
    check_products("DeformConv", count * w.shape[0], x)
    shift = offset.reshape(n, offset_group, kh * kw, 2, rows, columns)
    place = x.device
    ky = (torch.arange(kh, device=place) * dh).repeat_interleave(kw).reshape(-1, 1, 1)
    kx = (torch.arange(kw, device=place) * dw).repeat(kh).reshape(-1, 1, 1)
    y = shift[:, :, :, 0] + ky + (torch.arange(rows, device=place) * sh - top).reshape(1, -1, 1)
    across = shift[:, :, :, 1] + kx + (torch.arange(columns, device=place) * sw - left).reshape(1, 1, -1)
    grid = torch.stack([across / max((width - 1) / 2, 0.5) - 1, y / max((height - 1) / 2, 0.5) - 1], -1)
    if width == 1 or height == 1:
        raise NotImplementedError("DeformConv: an image of one row or column")
    images = x.reshape(n * offset_group, c // offset_group, height, width)
    grid = grid.reshape(n * offset_group, kh * kw * rows, columns, 2).to(x.dtype)
    taken = F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=True)
    taken = taken.reshape(n, offset_group, c // offset_group, kh * kw, rows, columns)
    if mask is not None:
        taken = taken * mask.reshape(n, offset_group, 1, kh * kw, rows, columns)
    taken = taken.reshape(n, group, c // group * kh * kw, rows * columns)
    weight = w.reshape(group, w.shape[0] // group, -1)
    out = torch.matmul(weight, taken).reshape(n, w.shape[0], rows, columns)
    return out if b is None else out + b.reshape(-1, 1, 1)


def _ceil_mode_padding(
    sizes: Any, kernel: list[int], strides: list[int], dilations: list[int], begin: list[int], end: list[int]
) -> list[int]:
    """Return the additional padding after each dimension that completes the last window in ceil mode."""
    extra = []
    for n, k, s, d, a, b in zip(sizes, kernel, strides, dilations, begin, end, strict=True):
        reach = (k - 1) * d + 1
        count = -(-(n + a + b - reach) // s) + 1
        if (count - 1) * s >= n + a:
            count -= 1
        extra.append(max((count - 1) * s + reach - (n + a + b), 0))
    return extra


def _allow_windows(
    what: str, x: Tensor, kernel: list[int], strides: list[int], dilations: list[int], begin: list[int], end: list[int]
) -> int:
    """Check and return the number of elements in all windows."""
    count = math.prod(x.shape[:2])
    for n, k, s, d, a, b in zip(x.shape[2:], kernel, strides, dilations, begin, end, strict=True):
        count *= max(-(-(n + a + b - (k - 1) * d - 1) // max(s, 1)) + 1, 1) * max(k, 1)
    check_objects(what, math.prod(kernel))
    check_work(what, count + _PLACE * math.prod(kernel))
    return count


@op("MaxPool")
def max_pool(
    x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Ints = None, kernel_shape: Ints,
    pads: Ints = None, storage_order: int = 0, strides: Ints = None, outputs: int = 1,
) -> Any:  # fmt: skip
    rank = x.ndim - 2
    kernel, strides, dilations = kernel_shape, strides or [1] * rank, dilations or [1] * rank
    begin, end = resolve_padding(auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    allow_padded("MaxPool", x, begin, end)
    count = _allow_windows("MaxPool", x, kernel, strides, dilations, begin, end)
    if outputs > 1:
        check_elements("MaxPool", count // max(math.prod(kernel), 1), each=8)
    simple = begin == end and all(2 * p <= k for p, k in zip(begin, kernel, strict=True))
    whole, shift = x, [0] * rank
    if not simple:
        if ceil_mode:
            end = [
                a + b
                for a, b in zip(
                    end, _ceil_mode_padding(x.shape[2:], kernel, strides, dilations, begin, end), strict=True
                )
            ]
        lowest = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
        whole, shift, begin, ceil_mode = F.pad(x, to_torch_padding(begin, end), value=lowest), begin, [0] * rank, 0
    if not x.is_floating_point():
        whole = whole.to(torch.float32)
    found = torch_function(f"F.max_pool{rank}d")(whole, kernel, strides, begin, dilations, bool(ceil_mode), outputs > 1)
    if outputs == 1:
        return found if x.is_floating_point() else found.to(x.dtype)
    values, places = found
    return values.to(x.dtype), _to_flat_indices(places, x.shape, whole.shape[2:], shift, storage_order)


def _to_flat_indices(places: Tensor, shape: Any, sizes: Any, shift: list[int], columns_first: int) -> Tensor:
    """Convert positions within an image to positions in the tensor."""
    rest = places
    parts: list[Tensor] = []
    for n in reversed(sizes):
        parts.insert(0, rest % n)
        rest = rest // n
    order = list(range(len(parts)))
    image = torch.zeros_like(places)
    for d in reversed(order) if columns_first else order:
        image = image * shape[2 + d] + (parts[d] - shift[d])
    count = math.prod(shape[2:])
    lead = torch.arange(shape[0] * shape[1], device=places.device).reshape(shape[0], shape[1], *[1] * len(parts))
    return image + lead * count


@op("AveragePool")
def average_pool(
    x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0, dilations: Ints = None,
    kernel_shape: Ints, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    rank = x.ndim - 2
    kernel, strides, dilations = kernel_shape, strides or [1] * rank, dilations or [1] * rank
    begin, end = resolve_padding(auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    allow_padded("AveragePool", x, begin, end)
    _allow_windows("AveragePool", x, kernel, strides, dilations, begin, end)
    if begin == end and set(dilations) == {1} and rank in _TORCH_DIMS and all(
        2 * p <= k for p, k in zip(begin, kernel, strict=True)
    ):  # fmt: skip
        return torch_function(f"F.avg_pool{rank}d")(x, kernel, strides, begin, bool(ceil_mode), bool(count_include_pad))
    rest = _ceil_mode_padding(x.shape[2:], kernel, strides, dilations, begin, end) if ceil_mode else [0] * rank
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)  # sums in narrower types would copy all windows
    counts = torch.ones(1, 1, *x.shape[2:], dtype=wide.dtype, device=x.device)
    counts = F.pad(
        F.pad(counts, to_torch_padding(begin, end), value=float(count_include_pad)), to_torch_padding([0] * rank, rest)
    )
    wide = F.pad(wide, to_torch_padding(begin, [a + b for a, b in zip(end, rest, strict=True)]))
    dims = list(range(2 + rank, 2 + 2 * rank))
    total = unfold_windows(wide, kernel, strides, dilations).sum(dims)
    return (total / unfold_windows(counts, kernel, strides, dilations).sum(dims)).to(x.dtype)


def unfold_windows(x: Tensor, kernel: list[int], strides: list[int], dilations: list[int]) -> Tensor:
    """Return the elements of each window as trailing dimensions."""
    for d, (k, s, dilation) in enumerate(zip(kernel, strides, dilations, strict=True)):
        x = x.unfold(2 + d, (k - 1) * dilation + 1, s)
        if dilation > 1:
            x = x[..., ::dilation]
    return x


@op("LpPool")
def lp_pool(
    x: Tensor, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Ints = None, kernel_shape: Ints,
    p: float = 2, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    rank = x.ndim - 2
    kernel, strides, dilations = kernel_shape, strides or [1] * rank, dilations or [1] * rank
    begin, end = resolve_padding(auto_pad, pads, x.shape[2:], kernel, strides, dilations)
    allow_padded("LpPool", x, begin, end)
    check_elements("LpPool", _allow_windows("LpPool", x, kernel, strides, dilations, begin, end))
    rest = _ceil_mode_padding(x.shape[2:], kernel, strides, dilations, begin, end) if ceil_mode else [0] * rank
    whole = F.pad(x.abs(), to_torch_padding(begin, [a + b for a, b in zip(end, rest, strict=True)]))
    parts = unfold_windows(whole, kernel, strides, dilations)
    return parts.pow(p).sum(list(range(2 + rank, 2 + 2 * rank))).pow(1 / p)


@op("MaxUnpool")
def max_unpool(
    x: Tensor, places: Tensor, output_shape: Ints = None, *, kernel_shape: Ints, pads: Ints = None,
    strides: Ints = None,
) -> Tensor:  # fmt: skip
    rank = x.ndim - 2
    strides, pads = strides or [1] * rank, pads or [0] * 2 * rank
    sizes = [
        (n - 1) * s - pads[d] - pads[d + rank] + k
        for d, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel_shape, strict=True))
    ]
    small = [*x.shape[:2], *sizes]
    whole = ints(output_shape) or small
    check_elements("MaxUnpool", *(max(n, 1) for n in small))
    check_elements("MaxUnpool", *(max(a, b, 1) for a, b in zip(whole, small, strict=True)))
    flat_out = torch.zeros(math.prod(small), dtype=x.dtype, device=x.device)
    out = torch.scatter(flat_out, 0, places.reshape(-1), x.reshape(-1)).reshape(small)
    if whole == small:
        return out
    return F.pad(out, [n for a, b in zip(reversed(whole), reversed(small), strict=True) for n in (0, a - b)])


def _spatial_dims(x: Tensor) -> list[int]:
    return list(range(2, x.ndim))


@op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return torch.mean(x, _spatial_dims(x), True)


@op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return torch.amax(x, _spatial_dims(x), True)


@op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    return x.abs().pow(p).sum(_spatial_dims(x), True).pow(1 / p)


@op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Tensor:
    rows, columns = pooled_shape
    check_elements("MaxRoiPool", rois.shape[0], x.shape[1], rows, columns)
    check_steps("MaxRoiPool", 4 * rois.shape[0] * rows * columns)
    height, width = x.shape[2:]
    out = []
    for image, x1, y1, x2, y2 in rois.tolist():
        check_steps("MaxRoiPool", 4 * rows * columns)
        left, top, right, bottom = (math.floor(v * spatial_scale + 0.5) for v in (x1, y1, x2, y2))
        high, wide = max(bottom - top + 1, 1) / rows, max(right - left + 1, 1) / columns
        cells = []
        for i in range(rows):
            a, b = (min(max(v + top, 0), height) for v in (math.floor(i * high), math.ceil((i + 1) * high)))
            for j in range(columns):
                c, d = (min(max(v + left, 0), width) for v in (math.floor(j * wide), math.ceil((j + 1) * wide)))
                part = x[int(image), :, a:b, c:d]
                cells.append(part.amax((1, 2)) if a < b and c < d else torch.zeros_like(x[0, :, 0, 0]))
        out.append(torch.stack(cells, -1).reshape(-1, rows, columns))
    return torch.stack(out) if out else x.new_zeros(0, x.shape[1], rows, columns)
