"""Lazy scalars: `item()` during capture returns a number that records a read only when it is used.

A number returned without use (`return loss.item()`) adds no guard; each replay reads it anew. So does a list of
`tolist()` that is returned.
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


class ReturnedList(LazyScalar):
    """Result of a `tolist()` that its function returns: nothing else sees it."""

    def __init__(self, elements: Any) -> None:
        self.elements = elements

    def look(self) -> None:
        """Do nothing: other code that runs meanwhile cannot use the list."""


class ReturnedListArray:
    """Stand-in for an array whose `tolist()` is called and returned."""

    def __init__(self, found: Any, keep: Callable[[Any], Any]) -> None:
        self.found, self.keep = found, keep

    def tolist(self) -> Any:
        """Return the stand-in of the list."""
        made = ReturnedList(self.found.tolist())
        self.keep(made)
        return made


# Instructions that push one value for those that they pop. The other ones that may stand between a value and its return
# are named LOAD_ and push, or do nothing to the stack.
_ONE_RESULT = ("CALL", "BINARY_", "UNARY_", "COMPARE_OP", "BUILD_", "LOAD_ATTR", "LOAD_METHOD", "IS_OP", "CONTAINS_OP")
_NO_EFFECT = ("CACHE", "NOP", "PUSH_NULL", "PRECALL", "KW_NAMES", "LOAD_")
_CONTAINERS = ("BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP")


@functools.lru_cache(256)
def _last_instructions(code: Any, place: int) -> bool:
    """True if the value that the call at `place` pushes stays on the stack, or in a container there, until it is
    returned.
    """
    instructions = list(dis.get_instructions(code))
    at = max(n for n, i in enumerate(instructions) if i.offset <= place)  # caches follow an instruction
    if instructions[at].opname == "PRECALL":  # CALL belongs to it (Python 3.11)
        at += 1
    depth = 1  # of the stack above what was there before the value
    for i in instructions[at + 1 :]:
        if i.opname == "RETURN_VALUE":
            return depth == 1
        if i.is_jump_target or not i.opname.startswith(_ONE_RESULT + _NO_EFFECT):
            return False
        after = depth + dis.stack_effect(i.opcode, i.arg)
        pushed = (1 + (i.opname == "LOAD_METHOD")) if i.opname.startswith(_ONE_RESULT) else max(after - depth, 0)
        if after - pushed < 1:  # it pops the value
            if i.opname not in _CONTAINERS:
                return False
            after = 1
        depth = after
    return False


def is_returned(frame: Any) -> bool:
    """True if a frame's result becomes part of its caller's return value and is not used otherwise."""
    return _last_instructions(frame.f_code, frame.f_lasti)


def to_number(value: Any) -> Any:
    """Return the number (or list) behind a lazy scalar without recording a read."""
    if isinstance(value, ReturnedList):
        return _to_exact_number(value).elements
    kind = value.__class__.__mro__[2]
    return kind.__new__(kind, _to_exact_number(value))


def _to_exact_number(value: Any) -> Any:
    value.is_seen, value.tell = True, _no_observer
    return value
