"""Where oneDNN serves convolutions in the place of NumPy: float32 arrays, where its library is installed and the switch
`torch.backends.mkldnn.enabled` is on.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlite._settings.switches import SWITCHES

from .blocks import buffer, share

if TYPE_CHECKING:
    from torchlite_onednn.conv import Convolutions


@functools.cache
def _convolutions() -> Convolutions | None:
    """The library's convolutions, None where there is none. RuntimeError if the one that was asked for will not do."""
    from torchlite_onednn.library import found

    library, why_not = found()
    asked = os.environ.get("TORCHLITE_ONEDNN", "0")
    if library is None and asked != "0":
        raise RuntimeError(f"TORCHLITE_ONEDNN={asked}: {why_not}")
    if library is None:
        return None
    from torchlite_onednn.conv import Convolutions

    return Convolutions(library, share, lambda number, size: buffer(number, (size,), np.uint8))


def _serving(plan: Any, *arrays: np.ndarray) -> Convolutions | None:
    """What serves a convolution of these arrays, if oneDNN does."""
    if not SWITCHES.mkldnn_enabled or any(a.dtype.char != "f" for a in arrays):
        return None
    if not (plan.batch and plan.channels and plan.filters):
        return None
    return _convolutions()


def _geometry(plan: Any):
    from torchlite_onednn.cuts import Geometry

    return Geometry(
        plan.batch,
        plan.channels,
        plan.filters,
        tuple(plan.size),
        tuple(plan.kernel),
        tuple(plan.stride),
        tuple(plan.padding),
        tuple(plan.dilation),
        plan.groups,
        tuple(plan.out),
    )


def correlate(x, weight, bias, plan):
    """The forward pass, None where NumPy is to compute it. `plan` is of `torchlite_numpy.conv`."""
    serving = _serving(plan, x, weight)
    return serving and serving.forward(_geometry(plan), x, weight, bias)


def spread(g, weight, bias, plan):
    """The transpose of `correlate`: the gradient of the input, and the transposed convolution."""
    serving = _serving(plan, g, weight)
    out = serving and serving.input_gradient(_geometry(plan), g, weight)
    if out is not None and bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def weight_gradient(g, x, plan):
    """The gradient of the weight."""
    serving = _serving(plan, g, x)
    return serving and serving.weight_gradient(_geometry(plan), g, x)
