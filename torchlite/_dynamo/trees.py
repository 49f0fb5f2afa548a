"""Arguments and results taken apart: tensors in a list, and the rest as a key and a way to put them together again."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite._types.layouts import Size

from .elements import Element, plain
from .exc import Unsupported
from .walking import SIMPLE, Held, elements_of, is_known, items_of


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
    if dataclasses.is_dataclass(cls):
        return (cls, key_and_tensors(value.__dict__, tensors, objects))
    if cls is slice:
        return (cls, *[key_and_tensors(v, tensors, objects) for v in (value.start, value.stop, value.step)])
    objects.append(value)
    return (object, id(value))


def with_tensors(value: Any, tensors: Any) -> Any:
    """Arguments with other tensors, of an iterator, in the places of theirs."""
    cls = value.__class__
    if isinstance(value, Tensor):
        return next(tensors)
    if cls is list or cls is tuple:
        return cls([with_tensors(item, tensors) for item in value])
    if cls is dict:
        return {name: with_tensors(item, tensors) for name, item in value.items()}
    if cls is slice:
        return slice(*[with_tensors(v, tensors) for v in (value.start, value.stop, value.step)])
    if dataclasses.is_dataclass(cls):
        new: Any = object.__new__(value.__class__)
        new.__dict__.update(with_tensors(value.__dict__, tensors))
        return new
    return value


def containers(value: Any, found: dict[int, Held] | None = None) -> dict[int, Held]:
    """The lists, dictionaries and dataclasses among arguments, as they are, by identity."""
    found = {} if found is None else found
    cls = value.__class__
    if cls is list or cls is dict:
        place: Any = value
    elif dataclasses.is_dataclass(cls):
        place = value.__dict__
    else:
        for item in value if isinstance(value, tuple) else ():
            containers(item, found)
        return found
    if id(value) not in found:
        found[id(value)] = Held(elements_of if cls is list else items_of, place)
        for item in found[id(value)].values:
            containers(item, found)
    return found


def flattened(result: Any, leaves: Any, lasting: Any = ()) -> tuple[list, Callable[[list], Any], Any]:
    """The distinct tensors of a result, a function that makes such a result of others, and what two results must agree
    in. Unsupported for objects that are not among `leaves`, and for containers (by identity) that live on.
    """
    tensors: list[Any] = []
    build, key = _builder(result, tensors, leaves, {*lasting})
    return tensors, build, key


def _builder(value: Any, tensors: list, leaves: Any, lasting: Any) -> tuple[Callable[[list], Any], Any]:
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
    if id(value) in lasting:
        raise Unsupported("it returns a list or the like that it got, or one twice")
    if cls is list or cls is dict:
        lasting.add(id(value))
    if cls is list or cls is tuple or isinstance(value, tuple):
        parts = [_builder(item, tensors, leaves, lasting) for item in value]
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
        pairs = {
            plain(name) if isinstance(name, Element) else name: _builder(item, tensors, leaves, lasting)
            for name, item in value.items()
        }
        return (
            lambda made: {name: pair[0](made) for name, pair in pairs.items()},
            (cls, *[(repr(name), pair[1]) for name, pair in pairs.items()]),
        )
    if id(value) in leaves:
        return (lambda made: value), ("object", id(value))
    if isinstance(value, OrderedDict) or cls.__flags__ & 1 << 9 and _is_of_attributes(value):
        lasting.add(id(value))
        return _object_builder(value, tensors, leaves, lasting)
    raise Unsupported(f"it returns an object of {cls.__module__}.{cls.__name__}")


def _is_of_attributes(value: Any) -> bool:
    """Whether an object of a program's class has nothing but attributes."""
    cls = value.__class__
    return cls.__new__ is object.__new__ and hasattr(value, "__dict__") and not is_known(cls.__module__)


def _object_builder(value: Any, tensors: list, leaves: Any, lasting: Any) -> tuple[Callable[[list], Any], Any]:
    """As `_builder`, of objects that have attributes, and of dictionaries with a class of their own (outputs of models
    are both).
    """
    cls: Any = value.__class__
    if getattr(cls, "__slots__", None):
        raise Unsupported(f"it returns an object of {cls.__name__}, which has slots")
    fields, key = _builder(dict(value.__dict__), tensors, leaves, lasting)
    items, more = _builder(dict(value), tensors, leaves, lasting) if isinstance(value, dict) else (None, None)

    def build(made: list) -> Any:
        new = object.__new__(cls) if items is None else cls.__new__(cls)
        for name, item in items(made).items() if items is not None else ():
            OrderedDict.__setitem__(new, name, item)
        new.__dict__.update(fields(made))
        return new

    return build, (cls, key, more)


def name_of(function: Any) -> str:
    """What a callable is called in messages."""
    found = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if found is None and isinstance(function, functools.partial):
        return name_of(function.func)
    return found or function.__class__.__name__
