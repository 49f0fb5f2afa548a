"""The steps of recurrent layers of files (`_recurrent_steps`): one launch for all of them, or one for each step."""

from __future__ import annotations

from typing import Any

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device
from torchlite_backends.kernel_sources.recurrent_steps import GATES, recurrent_steps_source

from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, round_up_to_groups

_USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
# Products of a step from which a processor's cores share a direction: a launch takes as long as so many.
_SHARED = 1 << 19
_ROWS, _UNITS = 4, 64  # of a tile
_MOST_UNITS = 1 << 16  # whose levels have exact sums in float32


def _recurrent_steps(
    sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, reverse, activations, clip, option
):  # fmt: skip
    given = sums, weight, h, c, bias, peepholes, lengths, scale, zero
    if not _is_served(given, cell, reverse, activations, clip, option):
        table = table_of(torch_device(sums.device.type, sums.device.index))
        return REGISTRY["_recurrent_steps"].composite(table, *given, cell, reverse, activations, clip, option)
    device, kind, steps = sums.device, sums.kind, sums.shape[0]
    ways, rows, size = h.shape
    parts, blocks = _share(
        device, ways, rows, size, GATES[cell] * size, scale is not None, cell == "gru" and not option
    )
    items = ways * parts * blocks
    output = empty(device, (steps, ways, rows, size), kind)
    state, other = (empty(device, (1 if c is None else 2, ways, rows, size), kind) for _ in range(2))
    room = ways * rows * GATES[cell] * size + (0 if scale is None else items * rows * (size + 1))
    scratch = empty(device, (room,), kind)
    width = (8 if kind == "f64" else 16) if device.is_cpu else 1
    function = device.function(
        recurrent_steps_source(cell, width, scale is not None, bool(option)), "recurrent_steps", "p" * 13 + "i" * 11,
        (width,) if width > 1 else (), T=kind, W=weight.kind, L="i32" if lengths is None else lengths.kind,
        PEEPHOLES=str(int(peepholes is not None)), LENGTHS=str(int(lengths is not None)),
    )  # fmt: skip
    arrays = [sums if x is None else as_contiguous(x) for x in given]
    numbers = [
        ways, rows, size, parts, blocks, sum(int(backward) << d for d, backward in enumerate(reverse)),
        *(-1 if x is None else int(len(x.shape) > 1) for x in (scale, zero)),
    ]  # fmt: skip
    sizes = ((items,), (1,)) if device.is_cpu else (round_up_to_groups(items, device.group), (device.group,))
    at_once = steps if blocks == 1 else 1
    for first in range(0, steps, at_once):
        function(*sizes, *arrays, scratch, other, output, state, steps, first, first + at_once, *numbers)
    return output, state


def _is_served(
    given: tuple[Array | None, ...], cell: str, reverse: Any, activations: Any, clip: float | None, option: Any
) -> bool:
    """True for the cells of the kernel: the usual functions, without clips and options of an LSTM."""
    sums, weight, h, *_, lengths, scale, _ = given
    assert sums is not None and weight is not None and h is not None
    usual = tuple(name for name, *_ in activations) == _USUAL[cell] * len(reverse) and clip is None
    if not usual or cell == "lstm" and option or not h.size or not sums.size or sums.kind not in ("f32", "f64"):
        return False
    if lengths is not None and lengths.kind not in ("i32", "i64"):
        return False
    if scale is None:
        return sums.device.is_cpu or cell != "gru" or bool(option)
    return sums.device.is_cpu and sums.kind == scale.kind == "f32" and h.shape[2] <= _MOST_UNITS


def _share(
    device: Device, ways: int, rows: int, size: int, columns: int, has_levels: bool, is_ordered: bool
) -> tuple[int, int]:
    """Return the numbers of parts of the rows and of blocks of the units. Levels are those of all rows, and units have
    an order if a product needs results of all of them.
    """
    if not device.is_cpu:
        return rows, size
    wanted = max(1, device.units // ways)
    parts = 1 if has_levels else min(wanted, -(-rows // _ROWS))
    if is_ordered or rows // parts * size * columns < _SHARED:
        return parts, 1
    return parts, min(wanted // parts, -(-size // _UNITS))
