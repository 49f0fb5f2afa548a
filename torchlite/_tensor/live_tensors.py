"""All tensors of the process."""

from __future__ import annotations

import gc
from itertools import chain, starmap

from .._dispatch import call


def live_tensors(generation: int | None = None) -> list:
    """Return the tensors that the garbage collector knows, also of subclasses.

    `generation` is one of the collector's, 0 for the youngest objects; None for all. The objects are filtered within
    one call in C, during which no other thread runs. A list of all objects that a thread holds for longer also holds
    tuples that other threads still build, and Python raises SystemError there.
    """
    is_tensor = type.__instancecheck__.__get__(call.Tensor)
    try:
        return list(filter(is_tensor, chain.from_iterable(starmap(gc.get_objects, [(generation,)]))))
    except ReferenceError:  # a weak proxy of an object that is gone has no class
        return [found for found in gc.get_objects(generation) if issubclass(type(found), call.Tensor)]
