"""Copies into another order of the dimensions, by tiles."""
from __future__ import annotations

import struct

from torchlite_kernels.rearranging import TRANSPOSE_LOCAL, TRANSPOSE_VECTORS

from .array import Array, row_major
from .layout import collapse

_LEAST = 4096  # elements below which the general copy is as good
_KINDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def transpose_into(target: Array, source: Array) -> bool:
    """Copy `source` into a row-major `target` of its shape and kind where the innermost dimension in memory is not the last one. Whether that was so."""
    if source.size < _LEAST or source.itemsize not in _KINDS:
        return False
    sizes, (steps,) = collapse(source.shape, source.steps)
    last = len(sizes) - 1
    if last < 1 or last > 7 or steps[last] == 1 or 1 not in steps or min(steps) < 1:
        return False
    inner = steps.index(1)
    if min(sizes[inner], sizes[last]) < 8:
        return False
    places = row_major(tuple(sizes))[1]
    others = [d for d in range(last) if d != inner]
    batches = 1
    for d in others:
        batches *= sizes[d]
    how = [len(others)]
    for numbers in (sizes, places, steps):
        how += [*[numbers[d] for d in others], *[0] * (6 - len(others))]
    device, rows, columns = source.device, sizes[inner], sizes[last]
    kind = _KINDS[source.itemsize]
    arguments = (source, target, rows, columns, places[inner], steps[last], struct.pack("19i", *how))
    if device.is_cpu:
        run = device.function(TRANSPOSE_VECTORS, "transpose_vectors", "ppiiiix", (16,), T=kind)
        run((-(-rows // 64), -(-columns // 64), batches), (1, 1, 1), *arguments)
    elif device.max_group >= 256:
        up = (-(-columns // 16) * 16, -(-rows // 16) * 16, batches)
        device.function(TRANSPOSE_LOCAL, "transpose_local", "ppiiiix", T=kind)(up, (16, 16, 1), *arguments)
    else:
        return False
    return True
