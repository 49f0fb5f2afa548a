"""`is_from_package`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Returns whether an object is a module of a package, or of a class that a package defines.

    Args:
        obj: Any object.

    Returns:
        True for modules and objects of a package's own code. False for those of external modules.

    Example:
        >>> torch.package.is_from_package(torch.nn.Linear(1, 1))
        False
    """
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)
