"""State that makes a dispatch mode see an op's decomposition instead of the op."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .._dispatch import call
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_record import Op


class _DecomposeState(threading.local):
    overload: Any = None  # the overload to decompose, until its first call


_STATE = _DecomposeState()


@contextlib.contextmanager
def decompose_next(overload: Any) -> Iterator[None]:
    """Decompose the next call of this overload inside the block."""
    before = _STATE.overload
    _STATE.overload = overload
    try:
        yield
    finally:
        _STATE.overload = before


def is_decomposing() -> bool:
    """True if a call is to be decomposed."""
    return _STATE.overload is not None


def should_decompose(overload: Any) -> bool:
    """True if a call that a mode would see as an overload is to be decomposed."""
    if _STATE.overload is not overload:
        return False
    _STATE.overload = None
    return True


def run_composite(op: Op, values: list) -> Any:
    """Run a record's composite implementation although it has a derivative formula."""
    if op.is_implicit:
        return call.execute(op, values)
    if op.promote is not None:
        values = call.cast_to_common_dtype(op, call.check_tensors(op, values))
    result = op.composite(CALLBACKS.F, *values)
    return result[0] if op.aux_outputs else result
