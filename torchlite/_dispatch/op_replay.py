"""Cached results of ops, which replace the kernel's result in a later call."""

from __future__ import annotations

from typing import Any

from .._settings.cached_property import cached_property
from .._types.devices import get_default_device
from . import call
from .autograd_graph import autograd_meta_of
from .backend_registry import table_of
from .op_record import Op


class CachedResult:
    """The raw results of a call, with version counters that detect later writes."""

    def __init__(self, result: Any) -> None:
        several = isinstance(result, tuple)
        tensors = result if several else (result,)
        metas = [autograd_meta_of(t) for t in tensors]
        self.counters = [(m if m.root is None else m.root, (m if m.root is None else m.root).n) for m in metas]
        self.kinds = [(t._tl_kernels, t.dtype) for t in tensors]
        self.data = tuple(t._tl_array for t in tensors) if several else result._tl_array

    @cached_property
    def val(self) -> Any:
        """The kept tensor or tensors, without history; they live as long as this."""
        several = isinstance(self.data, tuple)
        parts = self.data if several else (self.data,)
        made = tuple(call.wrap_array(table, data, d) for (table, d), data in zip(self.kinds, parts, strict=True))
        return made if several else made[0]

    @property
    def is_changed(self) -> bool:
        return any(counter.n != before for counter, before in self.counters)


def replay_op(op: Op, args: tuple, kwargs: dict, kept: CachedResult) -> Any:
    """Repeat an op without its kernel: the result is the cached array, with the autograd history of this call."""
    values = call.check_tensors(op, call.bind(op, args, dict(kwargs)))
    if op.promote is not None:
        values = call.cast_to_common_dtype(op, values)
    return call.wrap_and_record(op, call.table_of_values(values) or table_of(get_default_device()), values, kept.data)
