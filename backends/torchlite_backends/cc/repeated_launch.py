"""A pointwise kernel's launch, kept for later calls with arrays of the same shapes.

Describing arrays to a kernel of the devices, and looking for its program, takes ten microseconds in Python, as long as
the kernel needs for 100,000 floats. A call of equal shapes, dtypes and numbers differs in addresses alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .device import Device, address

_RESULT = -1  # the place of a new array


class RepeatedLaunch:
    """A launch as a function of the arguments: row-major arrays and numbers."""

    __slots__ = ("_count", "_dtype", "_launch", "_nbytes", "_pack", "_places", "_result", "_shape", "_sizes", "_values")

    def __init__(self, call: tuple, places: list[int], made: np.ndarray | None, result: int | None):
        function, count, sizes, nbytes, pack, values = call
        self._launch, self._count, self._sizes, self._nbytes = function.launch, count, sizes, nbytes
        self._pack, self._values, self._places, self._result = pack, values, places, result
        like = np.empty(0) if made is None else made
        self._shape, self._dtype = like.shape, like.dtype

    def __call__(self, args: tuple) -> np.ndarray | None:
        result = self._result
        out: Any = None if result is None else args[result]
        if result == _RESULT:
            out = np.empty(self._shape, self._dtype)
        given = [address(out if place == _RESULT else args[place]) for place in self._places]
        if self._launch(self._pack(*given, *self._values), self._sizes, self._count, self._nbytes):
            raise RuntimeError("the kernel refused")
        return out


def run_and_keep(device: Device, run: Callable[[], Any], args: tuple) -> tuple[Any, RepeatedLaunch | None]:
    """Return the result of `run()` and its launch; None in place of that if there was not one launch of the arguments'
    arrays and the result alone.
    """
    with device.using:
        device.launched, before = [], device.launched
        try:
            made = run()
        finally:
            calls, device.launched = device.launched, before
    if len(calls) != 1 or not calls[0][1] or made is not None and not _is_plain(made):
        return made, None
    call, buffers = calls[0]
    places = []
    for buffer in buffers:
        place = next((i for i, x in enumerate(args) if x is buffer.array), None)
        if place is None:
            if buffer.array is not made:
                return made, None
            place = _RESULT
        places.append(place)
    result = None if made is None else next((i for i, x in enumerate(args) if x is made), _RESULT)
    return made, RepeatedLaunch(call, places, made, result)


def _is_plain(x: Any) -> bool:
    return x.__class__ is np.ndarray and x.base is None and x.flags.c_contiguous
