"""ATen's `upsample_*` ops: one for each mode and number of dimensions, with their backward ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._dispatch.op_functions import function_for
from .._dispatch.op_record import REGISTRY
from .._ops.resample import used_factors

_MODES = {
    "upsample_nearest{}d": ("nearest", False, (1, 2, 3)),
    "_upsample_nearest_exact{}d": ("nearest-exact", False, (1, 2, 3)),
    "upsample_linear{}d": ("linear", True, (1,)), "upsample_bilinear{}d": ("bilinear", True, (2,)),
    "upsample_bicubic{}d": ("bicubic", True, (2,)), "upsample_trilinear{}d": ("trilinear", True, (3,)),
    "_upsample_bilinear{}d_aa": ("bilinear", True, (2,)), "_upsample_bicubic{}d_aa": ("bicubic", True, (2,)),
    "_upsample_lanczos{}d_aa": ("lanczos", True, (2,)),
}  # fmt: skip


def _resize(input: Any, size: Any, mode: str, align_corners: bool, factors: Any, antialias: bool) -> Any:
    run = function_for(REGISTRY["_resize"])
    factors = used_factors(mode, input.shape[2:], size, factors, antialias)
    return run(input, tuple(size), mode, align_corners, tuple(factors), antialias)


def _make_ops_for_mode(mode: str, has_corners: bool, dims: int, antialias: bool) -> tuple[Callable, Callable, Callable]:
    """Return the op by size, the op by size or scales, and the backward op."""

    def resize_by_size(self: Any, output_size: Any, *rest: Any, **keywords: Any) -> Any:
        rest = (*rest, *keywords.values())
        corners = bool(rest[0]) if has_corners else False
        scales = rest[has_corners:]
        return _resize(self, output_size, mode, corners, [*scales, *[None] * dims][:dims], antialias)

    def resize_by_size_or_scale(input: Any, output_size: Any, *rest: Any, **keywords: Any) -> Any:
        rest = (*rest, *keywords.values())
        corners = bool(rest[0]) if has_corners else False
        factors: Any = rest[-1] if len(rest) > has_corners else None
        if output_size is not None:
            return _resize(input, output_size, mode, corners, [None] * dims, antialias)
        size = [math.floor(n * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
        return _resize(input, size, mode, corners, factors, antialias)

    def resize_backward(grad_output: Any, output_size: Any, input_size: Any, *rest: Any, **keywords: Any) -> Any:
        rest = (*rest, *keywords.values())
        corners = bool(rest[0]) if has_corners else False
        scales = [*rest[has_corners:], *[None] * dims][:dims]
        run = function_for(REGISTRY["_resize_backward"])
        scales = used_factors(mode, input_size[2:], output_size, scales, antialias)
        return run(grad_output, tuple(input_size[2:]), mode, corners, tuple(scales), antialias)

    return resize_by_size, resize_by_size_or_scale, resize_backward


def _adapter_table() -> dict[str, Callable]:
    found: dict[str, Callable] = {}
    for pattern, (mode, has_corners, sizes) in _MODES.items():
        for dims in sizes:
            name = pattern.format(dims)
            sized, either, backward = _make_ops_for_mode(mode, has_corners, dims, name.endswith("_aa"))
            found |= {name: sized, f"{name}.vec": either, f"{name}_backward": backward}
    return found


ADAPTERS = _adapter_table()
