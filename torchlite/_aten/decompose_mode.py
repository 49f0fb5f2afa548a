"""A call that is taken apart though a mode would see it whole: for decompositions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .._dispatch import call
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_record import Op


class _DecomposeState(threading.local):
    overload: Any = None  # the one whose parts are wanted, until its first call


_STATE = _DecomposeState()


@contextlib.contextmanager
def decompose_next(overload: Any) -> Iterator[None]:
    """In the block the next call that is this overload is taken apart."""
    before = _STATE.overload
    _STATE.overload = overload
    try:
        yield
    finally:
        _STATE.overload = before


def is_decomposing() -> bool:
    """Whether some call is to be taken apart."""
    return _STATE.overload is not None


def should_decompose(overload: Any) -> bool:
    """Whether a call that a mode is to see as an overload is the one whose parts are wanted."""
    if _STATE.overload is not overload:
        return False
    _STATE.overload = None
    return True


def run_composite(op: Op, values: list) -> Any:
    """A record run by its composite, though it has a derivative of its own."""
    if op.is_implicit:
        return call.execute(op, values)
    if op.promote is not None:
        values = call.cast_to_common_dtype(op, call.check_tensors(op, values))
    result = op.composite(CALLBACKS.F, *values)
    return result[0] if op.aux_outputs else result
