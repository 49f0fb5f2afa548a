"""`torch._utils`: rebuild functions for pickles, and helpers that external programs use."""

from __future__ import annotations

from typing import Any

from ._serialization.tensor_rebuild import (
    _get_layout,  # noqa: F401
    _rebuild_from_type_v2,  # noqa: F401
    _rebuild_meta_tensor_no_storage,  # noqa: F401
    _rebuild_parameter,  # noqa: F401
    _rebuild_parameter_with_state,  # noqa: F401
    _rebuild_qtensor,  # noqa: F401
    _rebuild_sparse_tensor,  # noqa: F401
    _rebuild_tensor,  # noqa: F401
    _rebuild_tensor_v2,  # noqa: F401
    _rebuild_tensor_v3,  # noqa: F401
    _rebuild_wrapper_subclass,  # noqa: F401
)
from ._tensor import Tensor
from ._tensor.pickling import set_attributes, state_of
from ._types import dtypes
from ._types.devices import device
from .utils._exception_wrapper import ExceptionWrapper, KeyErrorMessage  # noqa: F401


def _get_obj_state(obj: Any) -> Any:
    """The state of an object besides its data, as `_set_obj_state` restores it."""
    return state_of(obj) if isinstance(obj, Tensor) else obj.__getstate__()


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Set the attributes of a state and return the object. RuntimeError for a state of another form."""
    if isinstance(obj, Tensor):
        return set_attributes(obj, state)
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for attributes in state if isinstance(state, tuple) else (state,):
        for name, value in (attributes or {}).items():
            setattr(obj, name, value)
    return obj


def _element_size(dtype) -> int:
    """The bytes of an element of a dtype."""
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_available_device_type():
    """The type of the machine's first accelerator, None where it has none."""
    from .accelerator import current_accelerator

    found = current_accelerator()
    return None if found is None else found.type


def _get_device_module(device_type: str):
    """The module of a device type, such as torch.cuda. RuntimeError where there is none."""
    import torchlite

    found = getattr(torchlite, device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


def _get_device_index(where, optional: bool = False, allow_cpu: bool = False):
    """The index of a device, a number or a name; -1 for the CPU with `allow_cpu`. `optional`: None where none is
    given. ValueError otherwise.
    """
    if isinstance(where, str):
        where = device(where)
    index = where if isinstance(where, int) else None
    if isinstance(where, device):
        if where.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {where}")
            return -1
        index = where.index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{where}")
    return index


def _flatten_dense_tensors(tensors):
    """The elements of tensors of one dtype, one after the other."""
    import torchlite as torch

    return torch.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of a flat tensor with the shapes of `tensors`."""
    parts, start = [], 0
    for tensor in tensors:
        parts.append(flat.narrow(0, start, tensor.numel()).view_as(tensor))
        start += tensor.numel()
    return tuple(parts)


def _take_tensors(tensors, size_limit: int):
    """Lists of tensors of one type each, of `size_limit` bytes or a tensor more."""
    open_lists: dict[Any, list] = {}
    for tensor in tensors:
        key = tensor.dtype, tensor.device
        chunk, size = open_lists.setdefault(key, [[], 0])
        bytes_of = tensor.numel() * tensor.element_size()
        if chunk and size + bytes_of > size_limit:
            yield chunk
            chunk, size = open_lists[key] = [[], 0]
        chunk.append(tensor)
        open_lists[key][1] = size + bytes_of
    yield from (chunk for chunk, _ in open_lists.values() if chunk)


def _reorder_tensors_as(tensors, ordered_tensors):
    """Tensors, in any order of types, in the order of `ordered_tensors`."""
    queues: dict[Any, list] = {}
    for tensor in tensors:
        queues.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    iterators = {key: iter(queue) for key, queue in queues.items()}
    return tuple(next(iterators[tensor.dtype, tensor.device]) for tensor in ordered_tensors)


def render_call(fn, args, kwargs) -> str:
    """A call as text, its tensors by their shapes."""
    from ._tensor.printing import printoptions
    from .overrides import resolve_name

    with printoptions(threshold=0, edgeitems=0):
        given = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return f"{resolve_name(fn) or fn}({', '.join(given)})"
