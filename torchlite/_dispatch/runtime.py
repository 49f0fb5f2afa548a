"""State that the generated functions read: grad mode of the thread, the flag of the general path, the names they use."""
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
LEAF = Leaf()
SEQUENCE = itertools.count(1)
# The globals of every generated function. ACTIVE counts entered interceptors and saved-tensor hooks in all threads.
GLOBALS: dict[str, Any] = {"__name__": "torchlite._generated", "ACTIVE": 0, "MODE": MODE, "LEAF": LEAF, "SEQUENCE": SEQUENCE, "new": object.__new__}
