"""Names of a package's modules in this process: `models.net` of the first one is `<torch_package_0>.models.net`."""

from __future__ import annotations

import itertools
import re

_NUMBERS = itertools.count()
_PREFIX = re.compile(r"<torch_package_\d+>(\.|$)")


def new_prefix() -> str:
    """Return the prefix of one more package."""
    return f"<torch_package_{next(_NUMBERS)}>"


def is_mangled(name: str) -> bool:
    """True for the name of a package's module.

    >>> is_mangled("<torch_package_0>.models.net"), is_mangled("models.net")
    (True, False)
    """
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """Return the name without the prefix of a package.

    >>> demangle("<torch_package_0>.models.net"), demangle("models.net")
    ('models.net', 'models.net')
    """
    return _PREFIX.sub("", name, count=1)
