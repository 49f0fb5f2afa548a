"""Names of ours that a user's subclass of Tensor has a use for.

A tensor's slots have short names (`_data`, `_meta`), and so have attributes of subclasses (`self._data = data` in a
wrapper of index lists, `self._meta = {}` in one that keeps headers). A class whose code or namespace has such a name
gets a descriptor for it: modules of torchlite see the slot, all others what the class means by the name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from .._types.package_name import is_torchlite_object

OUR_SLOTS = {"_data", "_table", "_node", "_meta", "_memory", "_level", "_signs", "_sparse", "_place", "_address"}
_ABSENT = object()


def separate_slots(cls: type, tensor: type) -> None:
    """Give a user's subclass of `tensor` a descriptor for each name of ours that it has a use for."""
    users = [base for base in cls.__mro__ if not is_torchlite_object(base) and base is not object]
    for name in OUR_SLOTS.intersection(name for base in users for name in _names_in(base)):
        setattr(cls, name, _DualAttribute(name, vars(tensor)[name], vars(cls).get(name, _ABSENT)))


def user_attribute(tensor: Any, name: str) -> Any:
    """An attribute as code outside torchlite sees it."""
    found = getattr(type(tensor), name, None)
    return found.theirs_of(tensor, type(tensor)) if isinstance(found, _DualAttribute) else getattr(tensor, name)


def has_own_meaning(cls: type, name: str) -> bool:
    """Whether a class has a meaning of its own for a name of ours."""
    return any(isinstance(vars(base).get(name), _DualAttribute) for base in cls.__mro__)


def _names_in(cls: type) -> Iterator[str]:
    for name, value in vars(cls).items():
        if not isinstance(value, _DualAttribute):
            yield name
        for part in (value, getattr(value, "fget", None), getattr(value, "fset", None)):
            code = getattr(getattr(part, "__func__", part), "__code__", None)
            if isinstance(code, CodeType):
                yield from _names_of(code)


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of(constant)


def _called_from_torchlite() -> bool:
    return is_torchlite_object(sys._getframe(2).f_globals.get("__name__", ""))


class _DualAttribute:
    """An attribute with two values: ours, and that of the class's author."""

    def __init__(self, name: str, ours: Any, theirs: Any) -> None:
        self.name, self.ours, self.theirs = name, ours, theirs

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if not _called_from_torchlite():
            return self.theirs_of(tensor, owner)
        if tensor is None:
            return self
        return self.ours.__get__(tensor, owner) if hasattr(self.ours, "__get__") else self.ours

    def __set__(self, tensor: Any, value: Any) -> None:
        found = self._declared(type(tensor))
        if _called_from_torchlite():
            self.ours.__set__(tensor, value)
        elif hasattr(found, "__set__"):
            found.__set__(tensor, value)
        else:
            tensor.__dict__[self.name] = value

    def __delete__(self, tensor: Any) -> None:
        found = self._declared(type(tensor))
        if hasattr(found, "__delete__"):
            found.__delete__(tensor)
        elif tensor.__dict__.pop(self.name, _ABSENT) is _ABSENT:
            raise AttributeError(self.name)

    def theirs_of(self, tensor: Any, owner: Any) -> Any:
        """What Python finds where the name is none of ours."""
        found = self._declared(owner)
        if tensor is not None and not hasattr(found, "__set__") and self.name in tensor.__dict__:
            return tensor.__dict__[self.name]
        if found is _ABSENT:
            raise AttributeError(
                f"'{owner.__name__}' object has no attribute '{self.name}'", name=self.name, obj=tensor
            )
        return found.__get__(tensor, owner) if hasattr(found, "__get__") else found

    def _declared(self, owner: Any) -> Any:
        """What the author's classes have under the name."""
        for cls in owner.__mro__:
            found = _ABSENT if is_torchlite_object(cls) else vars(cls).get(self.name, _ABSENT)
            found = found.theirs if isinstance(found, _DualAttribute) else found
            if found is not _ABSENT:
                return found
        return _ABSENT
