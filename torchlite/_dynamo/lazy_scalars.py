"""Lazy scalars: `item()` during capture returns a number that records a read only when it is used.

A number returned without use (`return loss.item()`) adds no guard; each replay reads it anew.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from typing import Any

_OBSERVING_METHODS = (
    "abs add and bool ceil divmod eq float floor floordiv format ge gt hash index int invert le lshift lt mod mul ne "
    "neg or pos pow radd rand rdivmod repr rfloordiv rlshift rmod rmul ror round rpow rrshift rshift rsub rtruediv "
    "rxor str sub truediv trunc xor reduce"
).split()
_METHODS = "as_integer_ratio bit_count bit_length conjugate hex is_integer to_bytes".split()


class LazyScalar:
    """Base of lazy int and float. `look` is called before the first use."""

    is_seen = False

    def look(self) -> None:
        """Notify the capture once."""
        if not self.is_seen:
            self.is_seen = True
            told, self.tell = self.tell, _no_observer
            told()

    tell: Callable[[], None]


def _no_observer() -> None:
    """Default observer; does nothing."""


def _make_observing_method(kind: type, name: str) -> Any:
    plain = getattr(kind, name)

    def method(self: Any, *args: Any) -> Any:
        self.look()
        return plain(self, *args)

    return method


def _make_lazy_class(kind: type) -> Any:
    names = [name for name in [*(f"__{n}__" for n in _OBSERVING_METHODS), *_METHODS] if hasattr(kind, name)]
    space: dict[str, Any] = {name: _make_observing_method(kind, name) for name in names}
    space["__reduce__"] = space["__reduce_ex__"] = lambda self, protocol=0: (kind, (kind(self),))
    for name in ("real", "imag", "numerator", "denominator"):
        if hasattr(kind, name):
            space[name] = property(_make_observing_property(kind, name))
    return type(kind.__name__, (LazyScalar, kind), space)


def _make_observing_property(kind: type, name: str) -> Any:
    def get(self: Any) -> Any:
        self.look()
        return getattr(kind, name).__get__(self)

    return get


_LAZY_CLASSES = {kind: _make_lazy_class(kind) for kind in (float, int)}


class LazyItemArray:
    """Stand-in for a one-element array whose `item()` is called."""

    def __init__(self, found: Any, keep: Callable[[Any], Callable[[], None]], is_returned: bool) -> None:
        self.found, self.keep, self.is_returned = found, keep, is_returned

    def item(self) -> Any:
        """Return the lazy number."""
        value = self.found.item()
        made = _LAZY_CLASSES.get(value.__class__)
        if made is None or made.__mro__[2] is int and not self.is_returned:
            # bool has no subclasses, and dimension arguments are checked for `int`
            self.keep(None)()
            return value
        number = made(value)
        number.tell = self.keep(number)
        return number


@functools.lru_cache(256)
def _last_instructions(code: Any, place: int) -> bool:
    later = [i for i in dis.get_instructions(code) if i.offset > place]
    for i in later:
        if i.opname == "RETURN_VALUE":
            return True
        if i.opname in ("CALL", "PRECALL", "CALL_METHOD") and i.argval == 0:
            continue
        if not i.opname.startswith(("LOAD_", "BUILD_", "CACHE", "NOP", "PUSH_NULL")):
            return False
    return False


def is_returned(frame: Any) -> bool:
    """True if a frame's result becomes part of its caller's return value and is not used otherwise."""
    return _last_instructions(frame.f_code, frame.f_lasti)


def to_number(value: Any) -> Any:
    """Return the number behind a lazy scalar without recording a read."""
    kind = value.__class__.__mro__[2]
    return kind.__new__(kind, _to_exact_number(value))


def _to_exact_number(value: Any) -> Any:
    value.is_seen, value.tell = True, _no_observer
    return value
