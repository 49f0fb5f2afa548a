"""Pickling of tensors: the state of subclasses, and Python pickles of tensors."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.callbacks import CALLBACKS
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.package_name import is_torchlite_object


def user_slot_names_of(cls: type) -> list[str]:
    """The names in `__slots__` of user-defined subclasses of Tensor."""
    found = []
    for base in cls.__mro__:
        if not is_torchlite_object(base) and base is not object:
            slots = base.__dict__.get("__slots__", ())
            found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def state_of(tensor: Any) -> Any:
    """The state of a tensor besides its elements: the result of its class's `__getstate__`, else its attributes, with
    those in `__slots__` as a second dict if there are any.
    """
    cls = type(tensor)
    if cls.__getstate__ is not object.__getstate__:
        return tensor.__getstate__()
    attributes = dict(tensor.__dict__)
    names = [name for name in user_slot_names_of(cls) if hasattr(tensor, name)] if cls is not call.Tensor else []
    return (attributes, {name: getattr(tensor, name) for name in names}) if names else attributes


_PROTECTED = frozenset(("_tl_array", "_tl_kernels", "dtype", "_tl_node", "_tl_meta", "__class__", "__dict__"))


def _is_reserved(name: Any) -> bool:
    """True if an item of a state would overwrite a tensor's internal attribute."""
    return not isinstance(name, str) or name in _PROTECTED


def set_state(tensor: Any, state: Any) -> Any:
    """Restore a tensor's pickled state, by its class's `__setstate__` if defined. RuntimeError for a state that would
    overwrite internal attributes.
    """
    own = getattr(type(tensor), "__setstate__", None)
    if own is not None and own is not getattr(call.Tensor, "__setstate__", None):
        own(tensor, state)
        return tensor
    return set_attributes(tensor, state)


def set_attributes(tensor: Any, state: Any) -> Any:
    """Restore the attributes of `state_of` and return the tensor. RuntimeError for a state that would overwrite
    internal attributes.
    """
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for values in (attributes, slots):
        if values and (not isinstance(values, dict) or any(_is_reserved(name) for name in values)):
            raise RuntimeError(f"Invalid serialized state: {type(values).__name__}")
    if attributes:
        tensor.__dict__.update(attributes)
    if slots:
        declared = user_slot_names_of(type(tensor))
        if not all(name in declared for name in slots):
            raise RuntimeError(f"Invalid serialized state: {type(tensor).__name__} has no such slots")
        for name, value in slots.items():
            setattr(tensor, name, value)
    return tensor


def rebuild_wrapper(cls, dtype_name: str, size: tuple, stride: tuple, offset: int, where: str, requires_grad, state):
    """Unpickle a tensor without data."""
    out = CALLBACKS.make_wrapper(
        cls, size, stride, offset, dtype=dtypes.BY_NAME[dtype_name], device=where, requires_grad=requires_grad
    )
    return set_state(out, state) if state else out


def rebuild(array: np.ndarray, dtype_name: str, requires_grad: bool, cls, state: Any, where: str = "cpu", order=None):
    """Unpickle a tensor. `order` are the dimensions in memory order, if it is not their own."""
    d = dtypes.BY_NAME[dtype_name]
    table = table_of(device_type(where))
    out = call.wrap_array(table, table.from_numpy(array.view(d.np) if array.dtype != d.np else array), d)
    return _finish_rebuild(out if order is None else out.permute(np.argsort(order).tolist()), requires_grad, cls, state)


def rebuild_in_storage(
    array: np.ndarray, where: str, size, stride, offset: int, dtype_name: str, requires_grad: bool, cls, state
):
    """A tensor out of a pickle, in a storage of these bytes."""
    from .storage import make_tensor_on_storage, rebuild_storage

    out = make_tensor_on_storage(rebuild_storage(array, where), dtypes.BY_NAME[dtype_name], size, stride, offset)
    return _finish_rebuild(out, requires_grad, cls, state)


def rebuild_meta(shape: tuple, stride: tuple, dtype_name: str, requires_grad: bool, cls, state: Any):
    """A meta tensor out of a pickle."""
    from .._dispatch.meta_backend import MetaArray

    d = dtypes.BY_NAME[dtype_name]
    out = call.wrap_array(table_of(device_type("meta")), MetaArray(shape, d, stride), d)
    return _finish_rebuild(out, requires_grad, cls, state)


def rebuild_conj_neg(memory: Any, signs: int, requires_grad: bool, state: Any):
    """A tensor with the conjugate or negative bit out of a pickle."""
    return _finish_rebuild(CALLBACKS.view_with_bits(memory, signs), requires_grad, call.Tensor, state)


def rebuild_sparse(layout: Any, parts: tuple, requires_grad: bool, state: Any):
    """A sparse tensor out of a pickle."""
    return _finish_rebuild(CALLBACKS.sparse("rebuild")(layout, parts), requires_grad, call.Tensor, state)


def rebuild_quantized(values: Any, quantizer: tuple, state: Any, packed: Any = None):
    """A quantized tensor out of a pickle."""
    return _finish_rebuild(CALLBACKS.quantized("rebuild")(values, quantizer, packed), False, call.Tensor, state)


def _finish_rebuild(out: Any, requires_grad: bool, cls, state: Any):
    out = out.detach()
    if cls is not call.Tensor:
        out = out.as_subclass(cls)
    if requires_grad:
        out.requires_grad_()
    return set_state(out, state) if state else out


def warn_hooks_not_pickled(tensor: Any) -> None:
    """Warn for each hook that is not pickled, except for hooks that opt out."""
    if not tensor.requires_grad:
        return
    for hook in list(tensor._gradient_hooks().values()):
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=4,
            )


class _OtherForm(threading.local):
    tensor: Any = None
    reduce: Callable[[Any], tuple] | None = None


_OTHER_FORM = _OtherForm()


@contextlib.contextmanager
def reduces_by(reduce: Callable[[Any], tuple], tensor: Any) -> Iterator[None]:
    """Within the block `Tensor.__reduce_ex__` of this one tensor is `reduce`, the form of a checkpoint. Classes call it
    in their `__reduce_ex__` or `__torch_function__`.
    """
    before = _OTHER_FORM.tensor, _OTHER_FORM.reduce
    _OTHER_FORM.tensor, _OTHER_FORM.reduce = tensor, reduce
    try:
        yield
    finally:
        _OTHER_FORM.tensor, _OTHER_FORM.reduce = before


def reduce_tensor(tensor: Any):
    """Pickle a tensor: its entire storage as a NumPy array of bytes, its offset, sizes and strides, dtype,
    requires_grad, class and attributes. A non-leaf becomes a leaf. If a backend does not expose its memory, the
    elements are stored; for a tensor with the conjugate or negative bit, the elements without the bit, and the bits.
    """
    if _OTHER_FORM.reduce is not None and _OTHER_FORM.tensor is tensor:
        return _OTHER_FORM.reduce(tensor)
    warn_hooks_not_pickled(tensor)
    if tensor._tl_is_sparse:
        return rebuild_sparse, (*CALLBACKS.sparse("pickle_parts")(tensor), tensor.requires_grad, state_of(tensor))
    if tensor.is_quantized:
        packed = (tensor.dtype, tuple(tensor.shape)) if tensor.dtype in dtypes.PACKED_LEVELS else None
        return rebuild_quantized, (*CALLBACKS.quantized("saved_parts")(tensor), state_of(tensor), packed)
    if tensor._tl_signs:
        return rebuild_conj_neg, (
            tensor._plain_tensor_on_memory(),
            tensor._tl_signs,
            tensor.requires_grad,
            state_of(tensor),
        )
    d, rest = tensor.dtype, (tensor.requires_grad, type(tensor), state_of(tensor))
    if tensor._tl_kernels.wraps:
        place = (tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), str(tensor.device))
        return rebuild_wrapper, (type(tensor), d.name, *place, tensor.requires_grad, rest[-1])
    if tensor.device.type == "meta":
        return rebuild_meta, (tuple(tensor.shape), tuple(tensor.stride()), d.name, *rest)
    if hasattr(tensor._tl_kernels.backend, "memory"):
        from .storage import geometry_of, storage_of

        return rebuild_in_storage, (storage_of(tensor).numpy(), str(tensor.device), *geometry_of(tensor), d.name, *rest)
    array = tensor._tl_kernels.to_numpy(tensor._tl_array)
    order = None
    if not array.flags.c_contiguous and min(array.strides) > 0:
        order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
        array = array.transpose(order)
    if array.dtype.kind == "V" or d.name in dtypes._EXTRA:
        array = np.ascontiguousarray(array).view(f"u{d.itemsize}")
    return rebuild, (array, d.name, *rest, str(tensor.device), order)
