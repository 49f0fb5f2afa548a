"""Where oneDNN serves convolutions in the place of NumPy: float32 arrays, where its library is installed and the switch
`torch.backends.mkldnn.enabled` is on.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlite._settings.backend_flags import FLAGS

from . import winograd
from .blocks import buffer, share

if TYPE_CHECKING:
    from torchlite_onednn.conv import Convolutions
    from torchlite_onednn.cuts import Geometry

# Channels, and places of all outputs, from which on Winograd's way is the faster one where it fits.
_CHANNELS, _PLACES = 128, 512


@functools.cache
def _convolutions() -> Convolutions | None:
    """The library's convolutions, None where there is none. RuntimeError if the one that was asked for will not do."""
    from torchlite_onednn.library import found

    library, why_not = found()
    asked = os.environ.get("TORCHLITE_ONEDNN", "")
    if library is None and asked not in ("", "0"):
        raise RuntimeError(f"TORCHLITE_ONEDNN={asked}: {why_not}")
    if library is None:
        return None
    from torchlite_onednn.conv import Convolutions

    return Convolutions(library, share, lambda number, size: buffer(number, (size,), np.uint8))


def _serving(kind: str, plan: Any, *arrays: np.ndarray) -> tuple[Convolutions, Geometry] | None:
    """What serves a pass over these arrays and the convolution's geometry, if oneDNN does."""
    if not FLAGS.mkldnn_enabled or any(a.dtype.char != "f" for a in arrays):
        return None
    if (serving := _convolutions()) is None or (geometry := _chosen(kind, plan)) is None:
        return None
    return serving, geometry


@functools.lru_cache(1024)
def _chosen(kind: str, plan: Any) -> Geometry | None:
    """The geometry of a pass over float32 arrays that oneDNN is the faster one at."""
    if not (plan.batch and plan.channels and plan.filters):
        return None
    geometry = _geometry(plan)
    return geometry if _wins(kind, geometry) and not _winograd_wins(plan, np.dtype(np.float32)) else None


def _wins(kind: str, geometry: Geometry) -> bool:
    from torchlite_onednn.rules import wins

    return wins(kind, geometry)


def _winograd_wins(plan: Any, dtype: np.dtype) -> bool:
    """Whether the products of NumPy's Winograd are the faster ones (0.55 to 1.0 of oneDNN's time, of all passes)."""
    places = plan.batch * plan.places
    return min(plan.channels, plan.filters) >= _CHANNELS and places >= _PLACES and winograd.fits(plan, dtype)


def _geometry(plan: Any) -> Geometry:
    from torchlite_onednn.cuts import Geometry

    size, kernel, stride, padding, dilation, out = (
        tuple(v) for v in (plan.size, plan.kernel, plan.stride, plan.padding, plan.dilation, plan.out)
    )
    return Geometry(plan.batch, plan.channels, plan.filters, size, kernel, stride, padding, dilation, plan.groups, out)


def correlate(x, weight, bias, plan):
    """The forward pass, None where NumPy is to compute it. `plan` is of `torchlite_numpy.conv`."""
    if (serving := _serving("forward", plan, x, weight)) is None:
        return None
    convolutions, geometry = serving
    return convolutions.forward(geometry, x, weight, bias)


def spread(g, weight, bias, plan):
    """The transpose of `correlate`: the gradient of the input, and the transposed convolution."""
    if (serving := _serving("data", plan, g, weight)) is None:
        return None
    convolutions, geometry = serving
    out = convolutions.input_gradient(geometry, g, weight)
    if out is not None and bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def weight_gradient(g, x, plan):
    """The gradient of the weight."""
    if (serving := _serving("weights", plan, g, x)) is None:
        return None
    convolutions, geometry = serving
    return convolutions.weight_gradient(geometry, g, x)
