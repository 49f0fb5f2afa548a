"""`repr(tensor)`: PyTorch's number formatting, summaries and suffixes.

The text comes from a NumPy array, so it is the same on all devices. All numbers of a tensor have one format, chosen
from the values shown: integral values end in a point ("1."), a wide range uses scientific notation, and all others have
`precision` digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np

from .._dispatch import MODE, call
from .._dispatch.callbacks import CALLBACKS
from .._types import opaque_dtypes
from .._types.dtypes import is_complex32


@dataclasses.dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


OPTIONS = _Options()
_PROFILES: dict[str, dict] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors are printed.

    precision: digits after the point (4). threshold: tensors with more elements are summarised (1000). edgeitems: how
    many are shown at each end then (3). linewidth: characters a line (80). profile: "default", "short" or "full" sets
    all of these. sci_mode: True or False switches scientific notation on or off; None (also when it is not given) lets
    the values decide.

    >>> import torchlite as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile="default")
    """
    options = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({name: value for name, value in given.items() if value is not None})
    for name, value in options.items():
        setattr(OPTIONS, name, value)
    OPTIONS.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The current settings of `set_printoptions` as a dict."""
    return dataclasses.asdict(OPTIONS)


@contextlib.contextmanager
def printoptions(**kwargs):
    """Settings of `set_printoptions` for the time of a `with` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _NumberStyle:
    """Format of the numbers of one array, all of the same width."""

    def __init__(self, values: np.ndarray):
        self.width, self.scientific, self.is_integral, self.floating = 1, False, True, values.dtype.kind not in "biu"
        if not self.floating:
            if values.size:
                self.width = max(len(str(v)) for v in values.ravel().tolist())
            return
        flat = values.astype(np.float64).ravel()
        flat = flat[np.isfinite(flat) & (flat != 0)]
        if flat.size == 0:
            return
        size = np.abs(flat)
        low, high = float(size.min()), float(size.max())
        self.is_integral = bool((flat == np.ceil(flat)).all())
        wide = high / low > 1000 or high > 1e8 or (not self.is_integral and low < 1e-4)
        self.scientific = wide if OPTIONS.sci_mode is None else bool(OPTIONS.sci_mode)
        digits = (
            f".{OPTIONS.precision}e" if self.scientific else ".0f" if self.is_integral else f".{OPTIONS.precision}f"
        )
        self.width = max(1, *(len(format(v, digits)) for v in flat.tolist())) + (
            self.is_integral and not self.scientific
        )

    def text(self, value) -> str:
        if not self.floating:
            out = str(value)
        elif self.scientific:
            out = format(value, f".{OPTIONS.precision}e")
        elif self.is_integral:
            out = format(value, ".0f") + ("." if math.isfinite(value) else "")
        else:
            out = format(value, f".{OPTIONS.precision}f")
        return out.rjust(self.width)


class _ComplexStyle:
    """Format of the numbers of a complex array, with a style for each part."""

    def __init__(self, values: np.ndarray):
        self.real, self.imag = _NumberStyle(values.real), _NumberStyle(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def text(self, value) -> str:
        imag = self.imag.text(value.imag).lstrip() + "j"
        return self.real.text(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _edge_indices(length: int, summarise: bool):
    """Indices shown of a dimension: all, or the first and last few (then with a gap between the two lists)."""
    edge = OPTIONS.edgeitems
    if summarise and length > 2 * edge:
        return list(range(edge)), list(range(length - edge, length)), True
    return list(range(length)), [], False


def _values_to_show(array: np.ndarray, summarise: bool) -> np.ndarray:
    """The values that will appear."""
    if not summarise:
        return array
    for axis, length in enumerate(array.shape):
        edge = OPTIONS.edgeitems
        if length > 2 * edge:  # `np.take` would copy all of an array that is not contiguous
            before = (slice(None),) * axis
            ends = array[(*before, slice(edge))], array[(*before, slice(length - edge, None))]
            array = np.concatenate(ends, axis)
    return array


def _format_row(array: np.ndarray, style, indent: int, summarise: bool) -> str:
    per_line = max(1, int((OPTIONS.linewidth - indent) // (style.width + 2)))
    if summarise and not OPTIONS.edgeitems:
        words = ["..."]
    else:
        first, last, gap = _edge_indices(array.shape[0], summarise)
        words = [style.text(v) for v in array[first].tolist()]
        if gap:
            words += [" ...", *(style.text(v) for v in array[last].tolist())]
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _format_nested(array: np.ndarray, style, indent: int, summarise: bool) -> str:
    if array.ndim == 0:
        return style.text(array.item())
    if array.ndim == 1:
        return _format_row(array, style, indent, summarise)
    first, last, gap = _edge_indices(array.shape[0], summarise)
    parts = [_format_nested(array[i], style, indent + 1, summarise) for i in first]
    if gap:
        parts += ["...", *(_format_nested(array[i], style, indent + 1, summarise) for i in last)]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def format_array(array: np.ndarray, indent: int = 0) -> str:
    """The numbers of an array in PyTorch's format; `indent` is the width of the text before it on the first line."""
    opaque = array.dtype.names is not None
    if opaque:
        array = opaque_dtypes.shown_values(array)
    elif is_complex32(array.dtype):
        array = array.astype(np.complex64)
    elif array.dtype.kind not in "biufc":
        array = array.astype(np.float32)
    summarise = array.size > OPTIONS.threshold
    seen = _values_to_show(array, summarise)
    if opaque:  # its zero counts as zero
        seen = np.where(seen == opaque_dtypes.SMALLEST, np.float32(0), seen)
    style = _ComplexStyle(seen) if array.dtype.kind == "c" else _NumberStyle(seen)
    return _format_nested(array, style, indent, summarise)


def add_suffixes(text: str, suffixes: list[str], indent: int, own_line: bool = False) -> str:
    """Append suffixes such as dtype=... and the closing bracket, on a new line if the line would be too long or with
    `own_line`.
    """
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if own_line or length + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            length, own_line = indent + len(suffix), False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _grad_name(node) -> str:
    name = getattr(node, "name", None)
    return name().rsplit("::", 1)[-1] if callable(name) else type(node).__name__


def _repr_prefix(tensor) -> str:
    return (
        "tensor(" if tensor._tl_signs or type(tensor) in (call.Tensor, call.Parameter) else f"{type(tensor).__name__}("
    )


def tensor_repr(tensor, contents: str | None = None) -> str:
    """`repr` of a Tensor. `contents`: the text for its numbers."""
    from .._types.devices import get_default_device
    from .._types.dtypes import bool_, get_default_dtype, int64

    prefix, shape, device, default = _repr_prefix(tensor), tuple(tensor.shape), tensor.device, get_default_dtype()
    # As PyTorch: the CPU is named only where it is not the default device, other devices always carry their index.
    suffixes = [] if device.type == "cpu" and get_default_device().type == "cpu" else [f"device='{device}'"]
    size = f"size={shape}"
    dtype = f"dtype={tensor.dtype}"
    if device.type == "meta":
        contents = contents or "..."
        suffixes += [size] + ([] if tensor.dtype is default else [dtype])
    elif 0 in shape:
        contents = contents or "[]"
        suffixes += ([] if len(shape) == 1 else [size]) + ([] if tensor.dtype is default else [dtype])
    else:
        suffixes += [] if OPTIONS.edgeitems else [size]
        if tensor.dtype not in (default, default.to_complex(), int64, bool_):
            suffixes.append(dtype)
        contents = contents or format_array(tensor._tl_kernels.to_numpy(tensor._tl_array), len(prefix))
    # A Python subclass may override these; print the tensor's actual state.
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{_grad_name(tensor.grad_fn)}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if MODE.forwards:
        suffixes += [f"tangent={tangent}" for tangent in CALLBACKS.visible_tangents(tensor)]
    return add_suffixes(prefix + contents, suffixes, len(prefix))
