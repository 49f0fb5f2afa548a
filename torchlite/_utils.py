"""How tensors are rebuilt from a checkpoint, under the names that PyTorch's files use."""

from __future__ import annotations

import math
from typing import Any

from ._dispatch import call, table_of
from ._dispatch.argument_checks import storage_nbytes_for
from ._dispatch.callbacks import CALLBACKS
from ._tensor import Parameter, Tensor
from ._tensor.pickling import set_state
from ._tensor.storage import UntypedStorage, tensor_in
from ._tensor.typed_storage import TypedStorage
from ._types import dtypes, layouts
from ._types.devices import device


def _kind(value) -> str:
    """A value as an error shows it: what a file holds may be long or deep."""
    return str(value) if isinstance(value, type) else f"an object of {type(value)}"


def _ints(values) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)):
        raise RuntimeError(f"sizes and strides of a tensor must be tuples, but got {_kind(values)}")
    if not layouts.are_valid_sizes(values):
        raise RuntimeError(
            "sizes, strides and offsets of a tensor must be integers that are not negative, and at most "
            f"{layouts.MAX_DIMS}"
        )
    return tuple(values)


def _geometry(size, stride, offset, d) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes, strides and offset, each looked at."""
    if not isinstance(d, dtypes.dtype):
        raise RuntimeError(f"expected a dtype, but got {_kind(d)}")
    size, stride, (offset,) = _ints(size), _ints(stride), _ints((offset,))
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if math.prod(size) * d.itemsize >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    return size, stride, offset


def _view(storage: UntypedStorage, d, offset, size, stride) -> Tensor:
    """A tensor on a loaded storage, every bound checked."""
    size, stride, offset = _geometry(size, stride, offset, d)
    if storage.device.type == "meta":  # without memory it is as large as it has to be
        storage.resize_(max(storage.nbytes(), storage_nbytes_for(size, stride, d.itemsize, offset)))
    return tensor_in(storage, d, size, stride, offset)


def _checked_storage(storage) -> tuple[UntypedStorage, dtypes.dtype]:
    """A loaded storage's bytes, and the dtype that it has."""
    if isinstance(storage, TypedStorage):
        return storage._untyped_storage, storage.dtype
    if not isinstance(storage, UntypedStorage):
        raise RuntimeError(f"expected a storage to build a tensor on, but got {type(storage).__name__}")
    return storage, dtypes.uint8


def _finish(tensor, requires_grad, metadata=None):
    if metadata:
        if not isinstance(metadata, dict):
            raise RuntimeError(f"the metadata of a tensor must be a dict, but got {_kind(metadata)}")
        if metadata.get("neg"):
            tensor = tensor._neg_view()
        if metadata.get("conj"):
            tensor = tensor.conj()
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    storage, d = _checked_storage(storage)
    return _view(storage, d, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    return _finish(_view(_checked_storage(storage)[0], dtype, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    from ._dispatch.meta_backend import MetaArray

    size, stride, _ = _geometry(size, stride, 0, dtype)
    if sum((n - 1) * s for n, s in zip(size, stride, strict=True)) * dtype.itemsize >= 2**63:
        raise RuntimeError("Storage size calculation overflowed")
    out = call.wrap(table_of(device("meta")), MetaArray(size, dtype, stride), dtype)
    return _finish(out, requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    place = _geometry(size, stride, storage_offset, dtype)
    return CALLBACKS.make_wrapper(
        cls, *place, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad is True
    )


def _rebuild_parameter(data, requires_grad, backward_hooks):
    if not isinstance(data, Tensor):
        raise RuntimeError(f"expected a tensor to make a parameter of, but got {_kind(data)}")
    return Parameter(data, requires_grad is True)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    out = func(*args)
    if not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise RuntimeError(f"expected a subclass of Tensor, but got {_kind(new_type)}")
    if not isinstance(out, Tensor):
        raise RuntimeError(f"expected a function that rebuilds a tensor, but it returned {_kind(out)}")
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    return set_state(out, state)


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor out of its parts, which are looked at: a file may hold anything."""
    return CALLBACKS.sparse("rebuild")(layout, data)


def _get_layout(name):
    found = {str(v): v for v in vars(layouts).values() if isinstance(v, layouts.layout)}
    if name not in found:
        raise RuntimeError(f"unknown layout {name[:100]}")
    return found[name]


class KeyErrorMessage(str):
    """Text whose repr is itself: KeyError shows the repr of its argument, which would hide the line breaks of a
    traceback.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception, with its traceback as text, to be raised again elsewhere: in another thread or process.

    exc_info: an exception, or what `sys.exc_info()` gave; the one that is being handled where there is none. where:
    what the message says of the place.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        import sys
        import traceback

        if exc_info is None:
            exc_info = sys.exc_info()
        error = exc_info if isinstance(exc_info, BaseException) else exc_info[1]
        self.exc_type, self.where = type(error), where
        self.exc_msg = "".join(traceback.format_exception(error))

    def reraise(self):
        """Raise an exception of the same type whose message holds the original traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        try:
            error = self.exc_type(message)
        except Exception:  # the user's exception may take other arguments
            raise RuntimeError(message) from None
        raise error


# -- tools that programs borrow --------------------------------------------------------------------


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
