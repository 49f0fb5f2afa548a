"""Ops on lists of tensors: the norm of all, and one in-place update of all.

For loops over hundreds of small tensors (usually gradients), for which the overhead of one op each dominates. The
functions do nothing, and report that, if a tensor needs more than its raw array; then the caller loops over the
tensors.
"""

from typing import Any

from torchlite._dispatch import NONDIFF, op
from torchlite._dispatch.autograd_graph import AutogradMeta, bump_version
from torchlite._dispatch.call import wrap_array
from torchlite._dispatch.dispatch_state import GLOBALS, MODE
from torchlite._dispatch.memory_overlap import has_internal_overlap
from torchlite._dispatch.numpy_errors import run_quietly
from torchlite._tensor import Parameter, Tensor
from torchlite._types.dtypes import float32, float64


def norm_of_all(tensors: Any) -> Any:
    """The Euclidean norm of all elements of a list of tensors, 0-d, or None."""
    found = _arrays_of(tensors)
    if found is None:
        return None
    table, arrays = found
    return wrap_array(table, run_quietly(table._total_norm, arrays))


def scale_all(tensors: Any, factor: Any) -> bool:
    """Multiply a list of tensors in place by a 0-d tensor; whether that was done."""
    found = _arrays_of([*tensors, factor])
    if found is None:
        return False
    table, arrays = found
    run_quietly(table._scale_all, arrays[:-1], arrays[-1])
    _count_changes(tensors)
    return True


def clamp_all(tensors: Any, low: float, high: float) -> bool:
    """Clamp a list of tensors to numbers, in place; whether that was done."""
    found = _arrays_of(tensors)
    if found is None:
        return False
    table, arrays = found
    run_quietly(table._clamp_all, arrays, low, high)
    _count_changes(tensors)
    return True


def _arrays_of(tensors: Any) -> Any:
    """(table, raw arrays) of tensors that a kernel may read and write directly: plain ones of one device and one dtype,
    float32 or float64, without recorded history and without active interceptors or write checks. Else None.
    """
    if not tensors or GLOBALS["INTERCEPTORS"] or GLOBALS["WRITE_CHECKS"] or GLOBALS["SIGNED"]:
        return None
    first = tensors[0]
    table, dtype = first._tl_kernels, first.dtype
    if dtype is not float32 and dtype is not float64 or table.device.type == "meta":
        return None
    records, arrays = MODE.grad, []
    for tensor in tensors:
        if tensor.__class__ is not Tensor and tensor.__class__ is not Parameter:
            return None
        raw = tensor._tl_array
        if (
            tensor.dtype is not dtype
            or tensor._tl_kernels is not table
            or records
            and tensor._tl_node is not None
            or raw.base is not None
            and has_internal_overlap(raw)
        ):
            return None
        arrays.append(raw)
    return table, arrays


def _count_changes(tensors: Any) -> None:
    for tensor in tensors:
        meta = tensor._tl_meta
        if meta.__class__ is AutogradMeta and meta.root is None and not meta.inference:  # `bump` without its calls
            meta.n += 1
        else:
            bump_version(tensor)


def _total_norm(F, arrays):
    flat = [F.reshape(array, (-1,)) for array in arrays]
    norms = F.stack([F._vector_norm_core(array, 2.0, (0,), False) for array in flat], 0)
    return F._vector_norm_core(norms, 2.0, (0,), False)


def _scale_all(F, arrays, factor):
    in_place = getattr(F, "mul_", None)
    for array in arrays:
        if in_place is not None:
            in_place(array, factor)
        else:
            F.copy_into(array, F.mul(array, factor))


def _clamp_all(F, arrays, low, high):
    for array in arrays:
        F.copy_into(array, F.clamp(array, low, high))


op(
    "_total_norm(arrays)",
    where="",
    tags=NONDIFF,
    composite=_total_norm,
    doc="The Euclidean norm of all elements of a list of raw arrays, 0-d: the norm of their norms.",
)
op(
    "_scale_all(arrays, factor)",
    where="",
    tags=NONDIFF,
    mutates="arguments",
    composite=_scale_all,
    doc="Multiply raw arrays in place by a 0-d one.",
)
op(
    "_clamp_all(arrays, low, high)",
    where="",
    tags=NONDIFF,
    mutates="arguments",
    composite=_clamp_all,
    doc="Clamp raw arrays to numbers, in place.",
)
