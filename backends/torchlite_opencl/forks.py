"""A forked child cannot use the OpenCL context of its parent: it is told so, as in PyTorch."""
from __future__ import annotations

import functools
import os

_MESSAGE = "Cannot re-initialize OpenCL in forked subprocess. To use OpenCL with multiprocessing, you must use the 'spawn' start method"


class _Refused:
    """In the place of an attribute."""

    def __get__(self, instance, owner=None):
        raise RuntimeError(_MESSAGE)

    def __set__(self, instance, value):
        raise RuntimeError(_MESSAGE)


@functools.cache
def watch(device_class: type) -> None:
    """In children forked from now on, make every use of a device of this class an error. Costs nothing in the parent."""
    def refuse() -> None:
        for name in ("context", "queue", "memory", "allocate"):
            setattr(device_class, name, _Refused())

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=refuse)
