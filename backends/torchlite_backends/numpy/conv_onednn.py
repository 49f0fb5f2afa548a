"""Dispatch of float32 convolutions to oneDNN if installed and `torch.backends.mkldnn.enabled` is True."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlite._settings.backend_flags import FLAGS

from . import winograd
from .cache_blocking import get_scratch_buffer, parallel_for

if TYPE_CHECKING:
    from torchlite_backends.onednn.conv import Convolutions
    from torchlite_backends.onednn.conv_partition import ConvShape

# Minimum channels and output positions for which Winograd's algorithm, if applicable, is faster.
_CHANNELS, _PLACES = 128, 512


@functools.cache
def _load_convolutions() -> Convolutions | None:
    """Return oneDNN's convolutions, None if it is not installed. RuntimeError if a requested library is unusable."""
    from torchlite_backends.onednn.library import find_library

    library, why_not = find_library()
    asked = os.environ.get("TORCHLITE_ONEDNN", "")
    if library is None and asked not in ("", "0"):
        raise RuntimeError(f"TORCHLITE_ONEDNN={asked}: {why_not}")
    if library is None:
        return None
    from torchlite_backends.onednn.conv import Convolutions

    return Convolutions(library, parallel_for, lambda number, size: get_scratch_buffer(number, (size,), np.uint8))


def _find_supported_library(kind: str, plan: Any, *arrays: np.ndarray) -> tuple[Convolutions, ConvShape] | None:
    """Return the library for a pass over a convolution's geometry, if oneDNN serves it."""
    if not FLAGS.mkldnn_enabled or any(a.dtype.char != "f" for a in arrays):
        return None
    if (serving := _load_convolutions()) is None or (geometry := _geometry_if_faster(kind, plan)) is None:
        return None
    return serving, geometry


@functools.lru_cache(1024)
def _geometry_if_faster(kind: str, plan: Any) -> ConvShape | None:
    """Return the geometry of a pass over float32 arrays that oneDNN computes faster."""
    if not (plan.batch and plan.channels and plan.filters):
        return None
    geometry = _make_conv_shape(plan)
    return geometry if _is_faster(kind, geometry) and not _is_winograd_faster(plan, np.dtype(np.float32)) else None


def _is_faster(kind: str, geometry: ConvShape) -> bool:
    from torchlite_backends.onednn.conv_heuristics import is_faster

    return is_faster(kind, geometry)


def _is_winograd_faster(plan: Any, dtype: np.dtype) -> bool:
    """True if NumPy's Winograd is faster (0.55 to 1.0 of oneDNN's time, of all passes)."""
    places = plan.batch * plan.places
    return min(plan.channels, plan.filters) >= _CHANNELS and places >= _PLACES and winograd.is_faster(plan, dtype)


def _make_conv_shape(plan: Any) -> ConvShape:
    from torchlite_backends.onednn.conv_partition import ConvShape

    size, kernel, stride, padding, dilation, out = (
        tuple(v) for v in (plan.size, plan.kernel, plan.stride, plan.padding, plan.dilation, plan.out)
    )
    return ConvShape(plan.batch, plan.channels, plan.filters, size, kernel, stride, padding, dilation, plan.groups, out)


def conv_forward(x, weight, bias, plan):
    """Forward pass, None if NumPy is to compute it. `plan` is of `torchlite_backends.numpy.conv`."""
    if (serving := _find_supported_library("forward", plan, x, weight)) is None:
        return None
    convolutions, geometry = serving
    return convolutions.forward(geometry, x, weight, bias)


def conv_transpose(g, weight, bias, plan):
    """Transpose of `conv_forward`: the gradient of the input, and the transposed convolution."""
    if (serving := _find_supported_library("data", plan, g, weight)) is None:
        return None
    convolutions, geometry = serving
    out = convolutions.input_gradient(geometry, g, weight)
    if out is not None and bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def weight_gradient(g, x, plan):
    """Return the gradient of the weight."""
    if (serving := _find_supported_library("weights", plan, g, x)) is None:
        return None
    convolutions, geometry = serving
    return convolutions.weight_gradient(geometry, g, x)
