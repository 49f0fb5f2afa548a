"""Memory overlap: which writes are allowed if elements share memory, or if an operand shares memory with the result.

PyTorch refuses a result whose elements overlap each other (an expanded tensor), and one that overlaps partially with an
operand. The field `overlap` of an op's record says which of these it allows.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._types.dtypes import FLOAT, bool_, uint8
from .backend import owner_of
from .callbacks import CALLBACKS
from .dispatch_state import LEAF, MODE
from .numpy_errors import run_quietly
from .op_record import Op

_INTERNAL_OVERLAP_MESSAGE = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)
_PARTIAL_OVERLAP_MESSAGE = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


def has_internal_overlap(raw: Any) -> bool:
    """True if several elements of a raw array share an address, as far as its strides show."""
    strides = raw.strides
    return (
        0 in strides and any(s == 0 and n > 1 for n, s in zip(raw.shape, strides, strict=True)) and 0 not in raw.shape
    )


def is_unsafe_target(tensor: Any) -> bool:
    """True if a view's elements share memory, or its base requires a gradient since after the view was made."""
    found = tensor._tl_meta
    base = found[0] if found.__class__ is tuple else None if found is None else found.base
    if base is not None and base._tl_node is LEAF and has_leaf_base(tensor):
        return True
    return 0 in tensor._tl_array.strides and has_internal_overlap(tensor._tl_array)


def has_leaf_base(tensor: Any) -> bool:
    """True if a tensor is a view, without a history, of a leaf that requires a gradient."""
    found = tensor._tl_meta
    if found is None or tensor._tl_node is not None or not MODE.grad:
        return False
    base = found[0] if found.__class__ is tuple else found.base
    return base is not None and base._tl_node is LEAF and tensor.dtype.category >= FLOAT


def _byte_range(table: Any, raw: Any) -> tuple[int, int] | None:
    """The offsets of an array's first byte in its storage and of the byte after its last, if its elements are dense."""
    size = raw.dtype.itemsize
    expected = size
    for step, n in sorted([(s, n) for n, s in zip(raw.shape, raw.strides, strict=True) if n != 1]):
        if step != expected:
            return None
        expected *= n
    owner = owner_of(raw)
    start = 0 if owner is raw else table.offset_between(raw, owner)
    return start, start + expected


def has_partial_overlap(table: Any, written: Any, read: Any, whole: bool = False) -> bool:
    """True if an array that is read overlaps with part of one that is written (with `whole`, also with all of it)."""
    a, b = written, read
    while a.base.__class__ is a.__class__:
        a = a.base
    while b.base.__class__ is b.__class__ is a.__class__:
        b = b.base
    if a is not b or written is read and not whole:
        return False
    if 0 in written.shape or 0 in read.shape:
        return False
    ours, theirs = _byte_range(table, written), _byte_range(table, read)
    if ours is None or theirs is None or ours[0] >= theirs[1] or theirs[0] >= ours[1]:
        return False
    return whole or ours != theirs or written.strides != read.strides


def check_no_internal_overlap(target: Any) -> None:
    """RuntimeError where elements of a tensor to be written share places."""
    if target._tl_array.base is not None and has_internal_overlap(target._tl_array):
        raise RuntimeError(_INTERNAL_OVERLAP_MESSAGE)


def check_no_partial_overlap(target: Any, value: Any, whole: bool = False) -> None:
    """RuntimeError if a tensor that is read (or one of a list) overlaps partially with one to be written."""
    if hasattr(value, "_tl_array"):
        if has_partial_overlap(target._tl_kernels, target._tl_array, value._tl_array, whole):
            raise RuntimeError(_PARTIAL_OVERLAP_MESSAGE)
    elif value.__class__ in (list, tuple):
        for item in value:
            check_no_partial_overlap(target, item, whole)


def _is_same_view(target: Any, source: Any) -> bool:
    """True if two tensors have the same elements at the same addresses."""
    a, b = target._tl_array, source._tl_array
    return a is b or (
        owner_of(a) is owner_of(b)
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
        and not target._tl_kernels.offset_between(a, b)
    )


def check_in_place(op: Op, values: list) -> bool:
    """PyTorch's checks before an op writes to its first argument. Return True if it writes elements of a tensor whose
    elements overlap each other; then the caller uses `write_expanded`.
    """
    target, allowed = values[0], op.overlap.internal
    if allowed == "unchecked":
        return False
    together = False
    if target._tl_array.base is not None and has_internal_overlap(target._tl_array):
        if allowed == "same_view" and hasattr(values[1], "_tl_array") and _is_same_view(target, values[1]):
            return False
        if allowed in ("refused", "same_view"):
            raise RuntimeError(_INTERNAL_OVERLAP_MESSAGE)
        together = allowed == "deprecated"
        if together:
            warnings.warn(
                f"Use of {op.function_name}_ on expanded tensors is deprecated. Please clone() the tensor before "
                f"performing this operation. This also applies to advanced indexing e.g. {op.overlap.example}",
                UserWarning,
                stacklevel=4,
            )
    whole = op.overlap.operands in ("none", "target")
    for value in values[1:]:
        if hasattr(value, "_tl_array") or value.__class__ in (list, tuple):
            check_no_partial_overlap(target, value, whole)
    return together


def write_expanded(op: Op, values: list) -> None:
    """Let an op write some elements of a tensor whose elements overlap each other: an address gets the value of one of
    its elements, or the sum of all.
    """
    target, table, F = values[0], values[0]._tl_kernels, CALLBACKS.F
    compute, given = getattr(F, op.name), dict(zip([p.name for p in op.params], values, strict=True))
    adds = given.get("accumulate", False)
    name = "values" if "values" in given else "value"
    base = F._zeros_like(target) if adds else target
    new = compute(*{**given, "input": base}.values())
    if not adds:
        mark = True if not hasattr(given[name], "_tl_array") else F.to(F._ones_like(given[name]), bool_)
        none = F.to(F._zeros_like(target), bool_)
        marks = compute(*{**given, "input": none, name: mark}.values())
    place = target._tl_array
    for d, (n, step) in enumerate(zip(place.shape, place.strides, strict=True)):
        if step or n == 1:
            continue
        if adds:
            new = F.sum(new, d, True)
        else:
            first = F.argmax(F.to(marks, uint8), d, True)
            new, marks = F.gather(new, d, first), F.gather(marks, d, first)
        place = table.narrow(place, d, 0, 1)
    run_quietly(table.copy_into, place, new._tl_array if not adds else run_quietly(table.add, place, new._tl_array))


def check_out(op: Op, out: Any, values) -> None:
    """PyTorch's checks before an op writes its result to an `out=` tensor."""
    data = out._tl_array
    if data.base is not None and has_internal_overlap(data) and op.overlap.internal not in ("allowed", "deprecated"):
        raise RuntimeError(_INTERNAL_OVERLAP_MESSAGE)
    owner = owner_of(data)
    for value in values:
        raw = getattr(value, "_tl_array", None)
        if raw is None:
            shared = value.__class__ in (list, tuple)
        else:
            shared = owner_of(raw) is owner and (raw is not data or op.overlap.operands in ("none", "target"))
        if shared:
            _check_operands(op, out, values)
            return


def _check_operands(op: Op, out: Any, values) -> None:
    allowed = op.overlap.operands or ("partial" if op.name.startswith(("linalg_", "fft_")) else "identical")
    if allowed == "partial":
        return
    changed = allowed == "target"
    for value in values:
        if hasattr(value, "_tl_array") or value.__class__ in (list, tuple):
            check_no_partial_overlap(out, value, allowed in ("none", "target") and not changed)
        changed = False
