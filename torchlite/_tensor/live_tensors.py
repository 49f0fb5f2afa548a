"""All tensors of the process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from itertools import chain, starmap

from .._dispatch import call


def live_tensors(generation: int | None = None) -> list:
    """Return the tensors that the garbage collector knows, also of subclasses.

    `generation` is one of the collector's, 0 for the youngest objects; None for all. The objects are filtered within
    one call in C, during which no other thread runs. A list of all objects that a thread holds for longer also holds
    tuples that other threads still build, and Python raises SystemError there. `isinstance` runs code of objects whose
    type defines `__class__`, so that the search among all objects only looks at those that refer to a class of tensors.
    """
    if generation is not None:
        try:
            return _tensors_of(gc.get_objects, (generation,))
        except ReferenceError:  # a weak proxy of an object that is gone has no class
            return []
    return _tensors_of(gc.get_referrers, _subclasses(call.Tensor))


def _tensors_of(find: Callable[..., list], arguments: Iterable) -> list:
    is_tensor = type.__instancecheck__.__get__(call.Tensor)
    return list(filter(is_tensor, chain.from_iterable(starmap(find, [arguments]))))


def _subclasses(cls: type) -> set[type]:
    """Return the class and all classes that inherit from it."""
    return {cls}.union(*map(_subclasses, type.__subclasses__(cls)))
