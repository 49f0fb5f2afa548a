"""The name of the package: "torchlite", and "torch" once a program calls `as_torch`."""

from __future__ import annotations

from typing import Any


def package_name() -> str:
    """The package's name at present.

    >>> package_name()
    'torchlite'
    """
    return __name__.partition(".")[0]


def is_torchlite_object(thing: Any) -> bool:
    """True if a class or function (or the module of that name) belongs to torchlite's front end.

    >>> is_torchlite_object("torchlite.nn"), is_torchlite_object(dict)
    (True, False)
    """
    module = thing if isinstance(thing, str) else getattr(thing, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("torchlite", package_name())
