"""Functions that rebuild tensors and layouts from a checkpoint. Files name them as PyTorch's `torch._utils` does."""

from __future__ import annotations

import math

from .._dispatch import call, table_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.shape_and_value_checks import storage_nbytes_for
from .._dispatch.shapes import contiguous_strides
from .._tensor import Parameter, Tensor
from .._tensor.pickling import set_state
from .._tensor.storage import UntypedStorage, make_tensor_on_storage
from .._tensor.typed_storage import TypedStorage
from .._types import dtypes, layouts
from .._types.devices import device
from .._types.package_name import package_name


def _short_description(value) -> str:
    """Format a value for an error message, shortened: a file's values may be long or deep."""
    return str(value) if isinstance(value, type) else f"an object of {type(value)}"


def _check_ints(values) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)):
        raise RuntimeError(f"sizes and strides of a tensor must be tuples, but got {_short_description(values)}")
    if not layouts.are_valid_sizes(values):
        raise RuntimeError(
            "sizes, strides and offsets of a tensor must be integers that are not negative, and at most "
            f"{layouts.MAX_DIMS}"
        )
    return tuple(values)


def _check_geometry(size, stride, offset, d) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the validated sizes, strides and offset."""
    if not isinstance(d, dtypes.dtype):
        raise RuntimeError(f"expected a dtype, but got {_short_description(d)}")
    size, stride, (offset,) = _check_ints(size), _check_ints(stride), _check_ints((offset,))
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if math.prod(size) * d.itemsize >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    return size, stride, offset


def _view_storage(storage: UntypedStorage, d, offset, size, stride) -> Tensor:
    """A tensor on a loaded storage, every bound checked."""
    size, stride, offset = _check_geometry(size, stride, offset, d)
    if storage.device.type == "meta":  # without memory it is as large as it has to be
        storage.resize_(max(storage.nbytes(), storage_nbytes_for(size, stride, d.itemsize, offset)))
    return make_tensor_on_storage(storage, d, size, stride, offset)


def _check_storage(storage) -> tuple[UntypedStorage, dtypes.dtype]:
    """A loaded storage's bytes, and the dtype that it has."""
    if isinstance(storage, TypedStorage):
        return storage._untyped_storage, storage.dtype
    if not isinstance(storage, UntypedStorage):
        raise RuntimeError(f"expected a storage to build a tensor on, but got {type(storage).__name__}")
    return storage, dtypes.uint8


def _apply_tensor_metadata(tensor, requires_grad, metadata=None):
    if metadata:
        if not isinstance(metadata, dict):
            raise RuntimeError(f"the metadata of a tensor must be a dict, but got {_short_description(metadata)}")
        if metadata.get("neg"):
            tensor = tensor._neg_view()
        if metadata.get("conj"):
            tensor = tensor.conj()
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    storage, d = _check_storage(storage)
    return _view_storage(storage, d, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _apply_tensor_metadata(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    return _apply_tensor_metadata(
        _view_storage(_check_storage(storage)[0], dtype, storage_offset, size, stride), requires_grad, metadata
    )


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    from .._dispatch.meta_backend import MetaArray

    size, stride, _ = _check_geometry(size, stride, 0, dtype)
    if sum((n - 1) * s for n, s in zip(size, stride, strict=True)) * dtype.itemsize >= 2**63:
        raise RuntimeError("Storage size calculation overflowed")
    out = call.wrap_array(table_of(device("meta")), MetaArray(size, dtype, stride), dtype)
    return _apply_tensor_metadata(out, requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    place = _check_geometry(size, stride, storage_offset, dtype)
    return CALLBACKS.make_wrapper(
        cls, *place, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad is True
    )


def _rebuild_parameter(data, requires_grad, backward_hooks):
    if not isinstance(data, Tensor):
        raise RuntimeError(f"expected a tensor to make a parameter of, but got {_short_description(data)}")
    return Parameter(data, requires_grad is True)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    out = func(*args)
    if not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise RuntimeError(f"expected a subclass of Tensor, but got {_short_description(new_type)}")
    if not isinstance(out, Tensor):
        raise RuntimeError(f"expected a function that rebuilds a tensor, but it returned {_short_description(out)}")
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    return set_state(out, state)


def _rebuild_sparse_tensor(layout, data):
    """Build a sparse tensor from its parts, and validate them: a file may contain anything."""
    return CALLBACKS.sparse("rebuild")(layout, data)


def _rebuild_qtensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks, metadata=None
):
    """Build a quantized tensor from its integers and the parameters of its quantizer, and validate them."""
    untyped, dtype = _check_storage(storage)
    if dtype not in dtypes.PACKED_LEVELS:
        values, packed = _rebuild_tensor(storage, storage_offset, size, stride), None
    else:
        values, packed = _view_storage(untyped, dtypes.uint8, 0, (untyped.nbytes(),), (1,)), (dtype, _check_ints(size))
        if storage_offset != 0 or _check_ints(stride) != contiguous_strides(packed[1]):
            raise RuntimeError(f"a tensor of {dtype} begins at its storage, and is contiguous")
    return CALLBACKS.quantized("rebuild")(values, quantizer_params, packed)


def _get_layout(name):
    found = {str(v): v for v in vars(layouts).values() if isinstance(v, layouts.layout)}
    if name not in found:
        raise RuntimeError(f"unknown layout {name[:100]}")
    return found[name]


for _function in [f for name, f in globals().items() if name.startswith("_rebuild_")]:
    _function.__module__ = f"{package_name()}._utils"  # programs refer to it here
