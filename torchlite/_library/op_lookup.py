"""Looks up a custom op by name, overload or CustomOpDef."""

from __future__ import annotations

from typing import Any

from . import library_op
from .custom_ops import OPS, CustomOpDef
from .library_op import LibraryOp


def resolve_op(op: Any) -> LibraryOp:
    """Return the op. Raise RuntimeError for an undefined name, ValueError for an invalid specifier, NotImplementedError
    for PyTorch's own ops.
    """
    if isinstance(op, CustomOpDef):
        return op._op
    if isinstance(op, str):
        return library_op.find_op(op)
    record = getattr(op, "_op", None)
    if record is None and getattr(op, "_overloads", None) is not None and op._namespace != "aten":
        record = op.default._op
    if isinstance(record, LibraryOp):
        return record
    if hasattr(op, "overloadpacket") or hasattr(op, "_overloads"):
        raise NotImplementedError(f"torchlite computes {op} by its own kernels, which torch.library cannot change")
    raise ValueError(f"given unexpected type for op: {type(op)}")


def find_custom_op_def(op: Any) -> CustomOpDef | None:
    """Return the CustomOpDef of an op."""
    if isinstance(op, CustomOpDef):
        return op
    found = resolve_op(op)
    return OPS.get(found.schema.name) if found.is_custom else None
