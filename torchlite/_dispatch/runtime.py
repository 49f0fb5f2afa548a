"""State that the generated functions read: grad mode of the thread, the flag of the general path,
the names they use.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any


class Mode(threading.local):
    """Grad mode of each thread."""

    grad = True
    inference = False
    plain = False  # whether __torch_function__ of subclasses is not asked


class Leaf:
    """Marks a leaf tensor that wants a gradient (in `Tensor._node`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LEAF"


MODE = Mode()
# One entry for each thread that has recording off at the moment: while empty, nobody needs to ask for the thread's mode
# (append and pop are atomic).
NO_GRAD: list[None] = []
LEAF = Leaf()
SEQUENCE = itertools.count(1)
# The globals of every generated function. ACTIVE counts entered interceptors and saved-tensor hooks in all threads.
GLOBALS: dict[str, Any] = {
    "__name__": "torchlite._generated",
    "ACTIVE": 0,
    "REBASED": 0,
    "MODE": MODE,
    "NO_GRAD": NO_GRAD,
    "LEAF": LEAF,
    "SEQUENCE": SEQUENCE,
    "new": object.__new__,
}


def set_grad(on: bool) -> None:
    """Turn recording on or off in this thread."""
    if MODE.grad is not on:
        if on:
            NO_GRAD.pop()
        else:
            NO_GRAD.append(None)
        MODE.grad = on


class recording:
    """Whether this thread records, for a block; cheaper than a context manager from contextlib."""

    __slots__ = ("mode", "saved")

    def __init__(self, mode: bool):
        self.mode = mode

    def __enter__(self):
        self.saved = MODE.grad
        set_grad(self.mode)

    def __exit__(self, *exc):
        set_grad(self.saved)
