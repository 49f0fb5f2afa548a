"""A forked child cannot use a device's context of its parent: it is told so, as in PyTorch."""

from __future__ import annotations

import functools
import os


class _ForkedAttribute:
    """In the place of an attribute."""

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
    """In children forked from now on, make every use of these attributes of a device of this class an error. Costs
    nothing in the parent.
    """

    def refuse() -> None:
        for name in attributes:
            setattr(device_class, name, _ForkedAttribute(label))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=refuse)
