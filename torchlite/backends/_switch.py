"""Attributes of a module, or of an object in one, that are switches."""

from __future__ import annotations

from typing import Any

from .._settings.switches import SWITCHES


def flag(name: str, setter: str, doc: str) -> Any:
    """A property that is the bool SWITCHES.<name>; `setter` is the name in the error for what is no bool."""

    def put(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")
        setattr(SWITCHES, name, value)

    return property(lambda self: getattr(SWITCHES, name), put, doc=doc)


def precision(what: str, doc: str) -> Any:
    """A property that is a float32 precision."""
    return property(
        lambda self: SWITCHES.precision(what), lambda self, value: SWITCHES.set_precision(what, value), doc=doc
    )


class Precision:
    """An object with `fp32_precision` of one kind of op."""

    _what: str

    def __init__(self, what: str):
        object.__setattr__(self, "_what", what)

    @property
    def fp32_precision(self) -> str:
        """ "none" (as the library's switch says), "ieee" or "tf32"."""
        return SWITCHES.precision(self._what)

    def __setattr__(self, name: str, value: str) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        SWITCHES.set_precision(self._what, value)
