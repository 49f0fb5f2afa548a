"""linspace and logspace, identity matrices, and triangle indices."""

from __future__ import annotations

import struct

from torchlite._dispatch.shapes import tril_size
from torchlite_backends.kernel_sources.linspace_tril_indices import PAIRS, SPACED

from ..core.array import Array, empty, kind_of
from ..core.copy_fill import fill_with
from ..core.device import Device, round_up_to_groups
from ..core.kernel_markers import mark_device_first
from .creation import full
from .diagonals import diagonal


def _launch_spaced(device: Device, start, end, steps: int, dtype, base=None) -> Array:
    kind = kind_of(dtype.np)
    out = empty(device, (steps,), kind)
    is_complex = dtype.category == 3
    wide = device.fp64 and not (
        base is None and dtype.category == 2 and dtype.itemsize <= 4 or is_complex and kind == "c64" and base is None
    )
    real = "double" if wide else "float"
    if dtype.category < 2:
        start, end = int(start), int(end)
    step = (end - start) / max(steps - 1, 1)
    if steps == 1:
        end, step = start, 0
    if not steps:
        return out
    numbers = [
        part for v in (start, end, step) for part in ((complex(v).real, complex(v).imag) if is_complex else (float(v),))
    ]
    final = (
        "(T_C)trunc({})"
        if dtype.category < 2
        else "convert_{}2({{}})".format("float" if kind == "c64" else "double")
        if is_complex
        else "(T_C)({})"
    )
    text = f"#define FINAL(x) {final.format('x')}\n#define REAL {real}\n" + _POWERS[
        base is not None, is_complex
    ].replace("BASE", repr(float(base or 1)))
    device.function(
        text + SPACED, "spaced", "pix", W=real + "2" * is_complex, T=kind, **({"UNUSED": "f64"} if wide else {})
    )(round_up_to_groups(steps, 64), (64,), out, steps, struct.pack(("d" if wide else "f") * len(numbers), *numbers))
    return out


_POWERS = {
    (False, False): "#define POWER(x) (x)\n",
    (False, True): "#define POWER(x) (x)\n",
    (True, False): "#define POWER(x) pow((REAL)BASE, x)\n",
    (True, True): "#define POWER(z) (pow((REAL)BASE, (z).x) * VEC2(W, cos((z).y * log((REAL)BASE)), sin((z).y * "
    "log((REAL)BASE))))\n",
}


@mark_device_first
def _linspace(device, start, end, steps, dtype):
    return _launch_spaced(device, start, end, steps, dtype)


@mark_device_first
def _logspace(device, start, end, steps, base, dtype):
    return _launch_spaced(device, start, end, steps, dtype, base)


@mark_device_first
def _identity_matrix(device, n, m, dtype):
    out = full(device, (n, m), 0, kind_of(dtype.np))
    if out.size:
        fill_with(diagonal(out), 1)
    return out


def _make_triangle_indices(device: Device, rows: int, columns: int, offset: int, dtype, lower: int) -> Array:
    below = tril_size(rows, columns, offset - 1 + lower)
    count = below if lower else rows * columns - below
    out = empty(device, (2, count), kind_of(dtype.np))
    if count:
        device.function(PAIRS, "pairs", "piiiii", T=out.kind)((rows,), None, out, rows, columns, offset, lower, count)
    return out


@mark_device_first
def _tril_indices(device, rows, columns, offset, dtype):
    return _make_triangle_indices(device, rows, columns, offset, dtype, 1)


@mark_device_first
def _triu_indices(device, rows, columns, offset, dtype):
    return _make_triangle_indices(device, rows, columns, offset, dtype, 0)
