"""All tensors of the process."""

from __future__ import annotations

import gc
from itertools import chain, compress, starmap

from .._dispatch import call


def live_tensors(generation: int | None = None) -> list:
    """Return the tensors that the garbage collector knows, also of subclasses.

    `generation` is one of the collector's, 0 for the youngest objects; None for all. One call in C lists the objects,
    filters them, and clears the list. So no other thread runs meanwhile: a list of all objects that a thread holds for
    longer also holds tuples that other threads still build, and Python raises SystemError there. The filter reads
    types alone, because `isinstance` runs code of objects whose type defines `__class__`.
    """
    objects: list = []
    fill = map(objects.extend, starmap(gc.get_objects, [(generation,)]))
    clear = starmap(objects.clear, [()])
    # `extend` and `clear` return None, which the filters leave out.
    steps = chain(filter(None, fill), objects, filter(None, clear))
    return list(compress(steps, map(type.__subclasscheck__.__get__(call.Tensor), map(type, objects))))
