"""Errors for uses of a parent's device context in a forked child, as in PyTorch."""

from __future__ import annotations

import functools
import os


class _ForkedAttribute:
    """Attribute that raises on access."""

    def __init__(self, label: str):
        self._message = (
            f"Cannot re-initialize {label} in forked subprocess. To use {label} with multiprocessing, you must use "
            "the 'spawn' start method"
        )

    def __get__(self, instance, owner=None):
        raise RuntimeError(self._message)

    def __set__(self, instance, value):
        raise RuntimeError(self._message)


@functools.cache
def refuse_after_fork(device_class: type, label: str, attributes: tuple[str, ...]) -> None:
    """Make uses of these attributes of a device class an error in children forked from now on.

    Costs nothing in the parent.
    """

    def refuse() -> None:
        for name in attributes:
            setattr(device_class, name, _ForkedAttribute(label))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=refuse)
