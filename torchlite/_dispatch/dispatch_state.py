"""State that generated functions read: the thread's grad mode, the slow-path flag, and the names in their globals."""

from __future__ import annotations

import itertools
import threading
from typing import Any


class Mode(threading.local):
    """Grad mode of each thread."""

    grad = True
    inference = False  # then nothing is recorded, and `asked` is the requested mode
    asked = False
    transforms = 0  # how many of torch.func's transforms the thread is inside
    plain = False  # whether __torch_function__ of subclasses is disabled
    forwards: tuple = ()  # the levels of forward-mode differentiation that the thread is inside
    forward = True  # whether levels of forward-mode differentiation send tangents along
    grad_layout_policy = True  # whether a leaf's gradient gets the leaf's strides
    torch_dispatch_disabled = False  # whether __torch_dispatch__ of subclasses is disabled


class NodeSentinel:
    """Sentinel in `Tensor._tl_node` for a tensor without a node."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


MODE = Mode()
# One entry for each thread with recording off. While it is empty, no op needs to read its thread's mode (append and pop
# are atomic).
NO_GRAD: list[None] = []
LEAF = NodeSentinel("LEAF")  # a leaf that wants a gradient
# A view created in no_grad mode of a tensor that requires a gradient: it reports requires_grad, but gets no gradient.
REQUIRES_GRAD_DETACHED = NodeSentinel("REQUIRES_GRAD_DETACHED")
SEQUENCE = itertools.count(1)
# Counts what makes ops that record nothing look again: threads in inference mode, and tensors that got a history by a
# write when views of them may have none.
STALE_VIEW_CHECKS: list[None] = []
# Not empty once a tensor without data was created. Then backward looks for such tensors.
HAS_WRAPPERS: list[None] = []
# Not empty once a class of the program defines `__torch_function__`. Then functions that are no ops look for such
# arguments.
OVERRIDES: list[None] = []
# The globals of every generated function. INTERCEPTORS counts entered interceptors and saved-tensor hooks in all
# threads. WRITE_CHECKS counts the same as STALE_VIEW_CHECKS for writes, and stays up once inference tensors may exist.
GLOBALS: dict[str, Any] = {
    "SIGNED": False,  # whether any tensor had the conjugate or negative bit
    "SPARSE": False,  # whether any tensor had a sparse layout
    "CLASS_RULES": False,  # whether any tensor was sparse or quantized: their classes have rules for ops
    "DISPATCHES": False,  # whether any subclass defines `__torch_dispatch__`
    "__name__": "torchlite._generated",
    "INTERCEPTORS": 0,
    "HISTORY_COUNTER": 0,
    "STALE_VIEW_CHECKS": STALE_VIEW_CHECKS,
    "WRITE_CHECKS": [],
    "MODE": MODE,
    "NO_GRAD": NO_GRAD,
    "LEAF": LEAF,
    "REQUIRES_GRAD_DETACHED": REQUIRES_GRAD_DETACHED,
    "SEQUENCE": SEQUENCE,
    "new": object.__new__,
    # Number of elements of an op's first tensor from which the kernel for large arrays is used.
    "LARGE": 1 << 15,
}


def change_counters(**changes: int) -> None:
    """Count up (1) or down (-1) among STALE_VIEW_CHECKS and WRITE_CHECKS: lists, since finalizers count too, in the
    midst of anything, and append and pop are atomic.
    """
    for name, change in changes.items():
        if change > 0:
            GLOBALS[name].append(None)
        else:
            GLOBALS[name].pop()


def set_grad_mode(on: bool) -> None:
    """Turn recording on or off in this thread.

    NO_GRAD counts a thread while its mode is off, and never less: a signal's handler may run between the two steps.
    """
    if MODE.grad is on:
        return
    if on:
        MODE.grad = True
        NO_GRAD.pop()
    else:
        NO_GRAD.append(None)
        MODE.grad = False


class recording:
    """True if this thread records, for a block; cheaper than a context manager from contextlib."""

    __slots__ = ("mode", "saved")

    def __init__(self, mode: bool):
        self.mode = mode

    def __enter__(self):
        self.saved = MODE.grad
        set_grad_mode(self.mode)

    def __exit__(self, *exc):
        set_grad_mode(self.saved)
