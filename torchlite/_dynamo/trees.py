"""Arguments and results taken apart: tensors in a list, and the rest as a key and a way to put them together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite._types.layouts import Size

from .elements import Element, plain
from .exc import Unsupported
from .walking import SIMPLE


class Leaf:
    """Stands in a key where a tensor was."""


def key_and_tensors(value: Any, tensors: list, objects: list) -> Any:
    """A hashable key of arguments. The tensors go into one list, objects that are known by which they are into another.
    Unsupported for what cannot be looked into.
    """
    cls = value.__class__
    if isinstance(value, Tensor):
        tensors.append(value)
        return Leaf
    if cls is int or cls is str or cls is bool or value is None:
        return (cls, value)
    if cls is tuple or cls is list or cls is Size:
        return (cls, *[key_and_tensors(item, tensors, objects) for item in value])
    if cls is dict:
        return (cls, *[(name, key_and_tensors(item, tensors, objects)) for name, item in value.items()])
    if isinstance(value, SIMPLE):
        return (cls, repr(value) if isinstance(value, (float, complex)) else value)
    if cls is slice:
        return (cls, *[key_and_tensors(v, tensors, objects) for v in (value.start, value.stop, value.step)])
    objects.append(value)
    return (object, id(value))


def flattened(result: Any, leaves: dict[int, Any]) -> tuple[list, Callable[[list], Any], Any]:
    """The distinct tensors of a result, a function that makes such a result of others, and what two results must agree
    in. Unsupported for objects that are not among `leaves`.
    """
    tensors: list[Any] = []
    build, key = _builder(result, tensors, leaves)
    return tensors, build, key


def _builder(value: Any, tensors: list, leaves: dict) -> tuple[Callable[[list], Any], Any]:
    cls = value.__class__
    if isinstance(value, Element) and value.is_seen:
        value, cls = plain(value), cls.__mro__[2]
    if isinstance(value, (Tensor, Element)):
        index = next((i for i, t in enumerate(tensors) if t is value), len(tensors))
        if index == len(tensors):
            tensors.append(value)
        return (lambda made: made[index]), ("tensor", index)
    if isinstance(value, SIMPLE) or cls is Size:
        return (lambda made: value), (cls, repr(value))
    if cls is list or cls is tuple or isinstance(value, tuple):
        parts = [_builder(item, tensors, leaves) for item in value]
        builds, keys = [p[0] for p in parts], (cls, *[p[1] for p in parts])
        if cls is tuple:
            if len(builds) == 2:
                first, second = builds
                return (lambda made: (first(made), second(made))), keys
            return (lambda made: tuple([build(made) for build in builds])), keys
        if cls is list:
            return (lambda made: [build(made) for build in builds]), keys
        put = getattr(cls, "_make", cls)
        return (lambda made: put([build(made) for build in builds])), keys
    if cls is dict:
        pairs = {name: _builder(item, tensors, leaves) for name, item in value.items()}
        return (
            lambda made: {name: pair[0](made) for name, pair in pairs.items()},
            (cls, *[(repr(name), pair[1]) for name, pair in pairs.items()]),
        )
    if id(value) in leaves:
        return (lambda made: value), ("object", id(value))
    raise Unsupported(f"it returns an object of {cls.__module__}.{cls.__name__}")
