"""Flattens arguments and results to a list of tensors and a key, and rebuilds them."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite._types.layouts import Size
from torchlite.nn.modules.module import Module

from .exc import Unsupported
from .guards import SIMPLE_TYPES, IdentityGuard, elements_of, is_known_module, items_of
from .lazy_scalars import LazyScalar, to_number


class LeafMarker:
    """Placeholder of a tensor in a key."""


def flatten_args(value: Any, tensors: list, objects: list) -> Any:
    """Return a hashable key of arguments. Append tensors to one list, and objects compared by identity to another.
    Raise Unsupported for opaque objects.
    """
    cls = value.__class__
    if isinstance(value, Tensor):
        tensors.append(value)
        return LeafMarker
    if cls is int or cls is str or cls is bool or value is None:
        return (cls, value)
    if cls is tuple or cls is list or cls is Size:
        return (cls, *[flatten_args(item, tensors, objects) for item in value])
    if cls is dict:
        return (cls, *[(name, flatten_args(item, tensors, objects)) for name, item in value.items()])
    if isinstance(value, SIMPLE_TYPES):
        return (cls, repr(value) if isinstance(value, (float, complex)) else value)
    if dataclasses.is_dataclass(cls):
        return (cls, flatten_args(value.__dict__, tensors, objects))
    if cls is slice:
        return (cls, *[flatten_args(v, tensors, objects) for v in (value.start, value.stop, value.step)])
    objects.append(value)
    return (object, id(value))


def without_objects(key: Any) -> Any:
    """Return a key without the identities of objects."""
    if key.__class__ is not tuple:
        return key
    return object if len(key) == 2 and key[0] is object else tuple([without_objects(item) for item in key])


def replace_tensors(value: Any, tensors: Any) -> Any:
    """Return the arguments with tensors replaced by those of an iterator."""
    cls = value.__class__
    if isinstance(value, Tensor):
        return next(tensors)
    if cls is list or cls is tuple:
        return cls([replace_tensors(item, tensors) for item in value])
    if cls is dict:
        return {name: replace_tensors(item, tensors) for name, item in value.items()}
    if cls is slice:
        return slice(*[replace_tensors(v, tensors) for v in (value.start, value.stop, value.step)])
    if dataclasses.is_dataclass(cls):
        new: Any = object.__new__(value.__class__)
        new.__dict__.update(replace_tensors(value.__dict__, tensors))
        return new
    return value


def find_containers(value: Any, found: dict[int, IdentityGuard] | None = None) -> dict[int, IdentityGuard]:
    """Return the lists, dictionaries and dataclasses among arguments, by id."""
    found = {} if found is None else found
    cls = value.__class__
    if cls is list or cls is dict:
        place: Any = value
    elif dataclasses.is_dataclass(cls):
        place = value.__dict__
    else:
        for item in value if isinstance(value, tuple) else ():
            find_containers(item, found)
        return found
    if id(value) not in found:
        found[id(value)] = IdentityGuard(elements_of if cls is list else items_of, place)
        for item in found[id(value)].values:
            find_containers(item, found)
    return found


Build = Callable[[list], Any]


def flatten_result(result: Any, leaves: Any, lasting: Any = ()) -> tuple[list, Build, Any]:
    """Return the distinct tensors of a result, a function that rebuilds the result, and a key for comparison. Raise
    Unsupported for objects not among `leaves` and for containers (by id) in `lasting`.
    """
    found = _ResultFlattener(leaves, lasting, set())
    build, key = found.make_builder(result)
    if not found.twice:
        return found.tensors, build, key
    found = _ResultFlattener(leaves, lasting, found.twice)
    again, key = found.make_builder(result)
    return found.tensors, lambda made: again([*made, {}]), key


class _ResultFlattener:
    """Flattener of a result. twice: numbers of containers that occur more than once; they are built once and cached
    after the tensors.
    """

    def __init__(self, leaves: Any, lasting: Any, twice: set[int]) -> None:
        self.leaves, self.lasting, self.twice = leaves, lasting, twice
        self.tensors: list[Any] = []
        self.numbers: dict[int, int] = {}  # container numbers, by id
        self.open: set[int] = set()  # containers that enclose the current one

    def make_builder(self, value: Any) -> tuple[Build, Any]:
        """Return a function that rebuilds the value from tensors, and its key."""
        cls = value.__class__
        if isinstance(value, LazyScalar) and value.is_seen:
            value = to_number(value)
            cls = value.__class__
        if isinstance(value, (Tensor, LazyScalar)):
            index = next((i for i, t in enumerate(self.tensors) if t is value), len(self.tensors))
            if index == len(self.tensors):
                self.tensors.append(value)
            return (lambda made: made[index]), ("tensor", index)
        if isinstance(value, SIMPLE_TYPES) or cls is Size:
            return (lambda made: value), (cls, repr(value))
        if id(value) in self.lasting:
            raise Unsupported("it returns a list or the like that it got")
        if isinstance(value, tuple):
            return self._make_tuple_builder(value, cls)
        if cls is list or cls is dict:
            return self._make_container_builder(
                value, self._make_list_builder if cls is list else self._make_dict_builder
            )
        if id(value) in self.leaves:
            return (lambda made: value), ("object", id(value))
        if isinstance(value, OrderedDict) or cls.__flags__ & 1 << 9 and _is_plain_object(value):
            return self._make_container_builder(value, self._make_object_builder)
        raise Unsupported(f"it returns an object of {cls.__module__}.{cls.__name__}")

    def _make_container_builder(self, value: Any, builder: Callable[[Any], tuple[Build, Any]]) -> tuple[Build, Any]:
        number = self.numbers.setdefault(id(value), len(self.numbers))
        if number in self.open:
            raise Unsupported("it returns an object that contains itself")
        if number != len(self.numbers) - 1:
            self.twice.add(number)
            return (lambda made: made[-1][number]), ("again", number)
        self.open.add(number)
        build, key = builder(value)
        self.open.remove(number)
        return (lambda made: made[-1].setdefault(number, build(made))) if number in self.twice else build, key

    def _make_tuple_builder(self, value: tuple, cls: Any) -> tuple[Build, Any]:
        parts = [self.make_builder(item) for item in value]
        builds, key = [p[0] for p in parts], (cls, *[p[1] for p in parts])
        if cls is tuple:
            if len(builds) == 2:
                first, second = builds
                return (lambda made: (first(made), second(made))), key
            return (lambda made: tuple([build(made) for build in builds])), key
        put = getattr(cls, "_make", cls)
        return (lambda made: put([build(made) for build in builds])), key

    def _make_list_builder(self, value: list) -> tuple[Build, Any]:
        parts = [self.make_builder(item) for item in value]
        builds = [p[0] for p in parts]
        return (lambda made: [build(made) for build in builds]), (list, *[p[1] for p in parts])

    def _make_dict_builder(self, value: dict) -> tuple[Build, Any]:
        pairs = {
            to_number(name) if isinstance(name, LazyScalar) else name: self.make_builder(item)
            for name, item in value.items()
        }
        return (
            lambda made: {name: pair[0](made) for name, pair in pairs.items()},
            (dict, *[(repr(name), pair[1]) for name, pair in pairs.items()]),
        )

    def _make_object_builder(self, value: Any) -> tuple[Build, Any]:
        """Handle objects with attributes and dictionary subclasses; model outputs are both."""
        cls: Any = value.__class__
        if getattr(cls, "__slots__", None):
            raise Unsupported(f"it returns an object of {cls.__name__}, which has slots")
        items, more = self._make_dict_builder(value) if isinstance(value, dict) else (None, None)
        fields, key = self._make_dict_builder(value.__dict__)

        def build(made: list) -> Any:
            new = object.__new__(cls) if items is None else cls.__new__(cls)
            for name, item in items(made).items() if items is not None else ():
                OrderedDict.__setitem__(new, name, item)
            new.__dict__.update(fields(made))
            return new

        return build, (cls, key, more)


def replace_lazy_scalars(value: Any, seen: set[int] | None = None) -> Any:
    """Return a result with numbers in place of its lazy scalars. Lists, dictionaries and objects stay the same ones."""
    seen = set() if seen is None else seen
    cls = value.__class__
    if isinstance(value, LazyScalar):
        return to_number(value)
    if isinstance(value, tuple):
        items = [replace_lazy_scalars(item, seen) for item in value]
        if all(map(operator.is_, items, value)):
            return value
        return tuple(items) if cls is tuple else getattr(cls, "_make", cls)(items)
    if id(value) in seen or isinstance(value, (Tensor, Module)):
        return value
    seen.add(id(value))
    if cls is list:
        replace_in_list(value, 0, seen)
    elif cls is dict or isinstance(value, OrderedDict):
        _replace_in_dictionary(value, seen)
    if cls.__flags__ & 1 << 9 and (isinstance(value, OrderedDict) or _is_plain_object(value)):
        _replace_in_dictionary(value.__dict__, seen)
    return value


def replace_in_list(value: list, first: int, seen: set[int] | None = None) -> None:
    """Replace the lazy scalars of a list from an element on, to which another thread may append meanwhile."""
    for n in range(first, len(value)):
        new = replace_lazy_scalars(value[n], seen)
        if new is not value[n]:
            value[n] = new


def _replace_in_dictionary(place: dict, seen: set[int]) -> None:
    for name, item in list(dict.items(place)):
        new = replace_lazy_scalars(item, seen)
        if new is not item:
            (OrderedDict if isinstance(place, OrderedDict) else dict).__setitem__(place, name, new)
    if place.__class__ is dict and any(isinstance(name, (LazyScalar, tuple)) for name in place):
        items = [(replace_lazy_scalars(name, seen), item) for name, item in place.items()]
        place.clear()
        place.update(items)


def _is_plain_object(value: Any) -> bool:
    """True if a user-defined object has only attributes."""
    cls = value.__class__
    return cls.__new__ is object.__new__ and hasattr(value, "__dict__") and not is_known_module(cls.__module__)


def callable_name(function: Any) -> str:
    """Return a callable's name for messages."""
    found = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if found is None and isinstance(function, functools.partial):
        return callable_name(function.func)
    return found or function.__class__.__name__
