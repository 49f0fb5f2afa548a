"""Results of ops that are kept, and put in the place of the kernel's in a later call."""

from __future__ import annotations

from typing import Any

from .._types.devices import get_default_device
from . import call
from .autograd_graph import autograd_meta_of
from .backend_registry import table_of
from .op_record import Op


class CachedResult:
    """The raw results of a call, with the versions that tell whether somebody wrote to them since."""

    def __init__(self, result: Any) -> None:
        several = isinstance(result, tuple)
        metas = [autograd_meta_of(t) for t in (result if several else (result,))]
        self.counters = [(m if m.root is None else m.root, (m if m.root is None else m.root).n) for m in metas]
        self.data = tuple(t._tl_array for t in result) if several else result._tl_array

    @property
    def is_changed(self) -> bool:
        return any(counter.n != before for counter, before in self.counters)


def replay_op(op: Op, args: tuple, kwargs: dict, kept: CachedResult) -> Any:
    """The op called once more, without its kernel: what was kept is its result, with the history of this call."""
    values = call.check_tensors(op, call.bind(op, args, dict(kwargs)))
    if op.promote is not None:
        values = call.cast_to_common_dtype(op, values)
    return call.wrap_and_record(op, call.table_of_values(values) or table_of(get_default_device()), values, kept.data)
