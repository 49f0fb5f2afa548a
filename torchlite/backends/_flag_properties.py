"""Module and object attributes that read and write a switch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._settings.backend_flags import FLAGS
from .._settings.importable_module import ImportableModule


def disable_global_flags() -> None:
    """Makes the switches of `cudnn` and `mkldnn` read-only, except through their `flags(...)`.

    Setting an attribute raises RuntimeError. It serves test suites.

    Example:
        >>> from torchlite._settings.backend_flags import FLAGS
        >>> torch.backends.disable_global_flags()
        >>> torch.backends.cudnn.enabled = True
        Traceback (most recent call last):
        RuntimeError: not allowed to set torch.backends.cudnn flags after disable_global_flags; ...
        >>> FLAGS.flags_frozen = False
    """
    FLAGS.flags_frozen = True


def flags_frozen() -> bool:
    """Returns whether `disable_global_flags` was called.

    Example:
        >>> torch.backends.flags_frozen()
        False
    """
    return FLAGS.flags_frozen


@contextlib.contextmanager
def allow_mutation() -> Iterator[None]:
    """Context manager in which switches can always be set."""
    before, FLAGS.flags_frozen = FLAGS.flags_frozen, False
    try:
        yield
    finally:
        FLAGS.flags_frozen = before


class SwitchModule(ImportableModule):
    """A module whose properties are switches."""

    def __setattr__(self, name: str, value: Any) -> None:
        if FLAGS.flags_frozen and isinstance(getattr(type(self), name, None), property):
            raise RuntimeError(
                f"not allowed to set {self.__name__.replace('torchlite', 'torch')} flags after disable_global_flags; "
                "please use flags() context manager instead"
            )
        super().__setattr__(name, value)


def make_flag_property(name: str, setter: str, doc: str) -> Any:
    """Return a property for the bool SWITCHES.<name>; `setter` is the name in the error for other types."""

    def set_flag(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")
        setattr(FLAGS, name, value)

    return property(lambda self: getattr(FLAGS, name), set_flag, doc=doc)


def make_precision_property(what: str, doc: str) -> Any:
    """A property that is a float32 precision."""
    return property(lambda self: FLAGS.precision(what), lambda self, value: FLAGS.set_precision(what, value), doc=doc)


class Precision:
    """An object with the `fp32_precision` of one kind of op."""

    _what: str

    def __init__(self, what: str):
        object.__setattr__(self, "_what", what)

    @property
    def fp32_precision(self) -> str:
        """Return "none" (follows the library's switch), "ieee" or "tf32"."""
        return FLAGS.precision(self._what)

    def __setattr__(self, name: str, value: str) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        FLAGS.set_precision(self._what, value)
