"""Creates tensors from Python data, from NumPy arrays, and from arrays of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.autograd_graph import autograd_meta_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, MODE, OVERRIDES
from .._dispatch.error_translation import filter_traceback
from .._dispatch.interceptors import call_function_mode, torch_function_disabled
from .._dispatch.numpy_errors import run_quietly
from .._dispatch.shape_and_value_checks import set_requires_grad
from .._dispatch.tracing import THREAD, TRACES
from .._types import dtypes, opaque_dtypes
from .._types.devices import default_tensor_type_device, get_default_device
from .._types.devices import device as device_type
from .._types.dtypes import as_argument, from_np, get_default_dtype
from .._types.layouts import Size
from .interop import from_dlpack as _from_dlpack
from .interop import from_foreign, is_capsule, is_foreign
from .nested_sequences import (
    compute_sizes,
    from_plain_items,
    infer_dtype,
    is_sequence,
    number_of_tensor,
    to_array,
    warn_list_of_arrays,
)

if TYPE_CHECKING:
    from .tensor import Tensor


def _default_kernel_table(where):
    return table_of(get_default_device() if where is None else call._resolve_device(where))


def _infer_dtype(array: np.ndarray, data):
    """PyTorch's dtype for Python data: floats get the default dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        return from_np(array.dtype.newbyteorder("="))
    kind = array.dtype.kind
    if kind == "f":
        return get_default_dtype() if not _has_numpy(data) else from_np(array.dtype)
    if kind == "c":
        return get_default_dtype().to_complex() if not _has_numpy(data) else from_np(array.dtype)
    if kind in "iu":
        return dtypes.int64 if not _has_numpy(data) else from_np(array.dtype)
    return from_np(array.dtype)


def _has_numpy(data) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic)) or hasattr(data.__class__, "__array__")


def is_scipy_sparse(value) -> bool:
    """True if the value is a matrix or an array of `scipy.sparse`. SciPy is not imported."""
    return any(str(getattr(cls, "__module__", "")).startswith("scipy.sparse.") for cls in value.__class__.__mro__)


def _convert_foreign(data):
    """Convert an object of another library: a SciPy sparse matrix to a sparse tensor, an object with `__array__` (a
    pandas Series, a DataFrame) or `__array_interface__` (a PIL Image) to an array. Other objects are returned.
    """
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return np.asarray(data)  # whose dtype is the tensor's
    return CALLBACKS.from_scipy_sparse(data) if is_scipy_sparse(data) else data


def _unwrap_tensors(data, d):
    """Nested lists with one-element Tensors replaced by numbers for a dtype."""
    if isinstance(data, call.Tensor):
        return number_of_tensor(data, d)
    if isinstance(data, (list, tuple)):
        return [_unwrap_tensors(item, d) for item in data]
    return data


def _classes_of_items(data, outer: tuple = ()) -> set[type]:
    """The classes of the items of nested lists. `outer`: ids of the enclosing lists, for lists that contain
    themselves.
    """
    found = set(map(type, data))
    if any(issubclass(cls, (list, tuple)) for cls in found) and id(data) not in outer:
        for item in data:
            if isinstance(item, (list, tuple)):
                found |= _classes_of_items(item, (*outer, id(data)))
    return found


def _infer_from_items(data, classes: set[type]) -> Any:
    """The dtype of a list with tensors or NumPy's numbers among its items: all items count."""
    compute_sizes(data)
    found = infer_dtype(data)
    if found.category == dtypes.INT and np.bool_ in classes:
        raise TypeError("'numpy.bool' object cannot be interpreted as an integer")
    return found


def _as_array(data, d, has_tensors: bool) -> tuple[np.ndarray, object]:
    """Python data as a NumPy array (always a copy), of a dtype that holds it until it is cast to `d`, and the data to
    infer the dtype from.
    """
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    given = data
    if isinstance(data, (list, tuple)):
        warn_list_of_arrays(data)
        compute_sizes(data)
        if has_tensors:
            data = _unwrap_tensors(data, infer_dtype(data) if d is None else d)
    try:
        array = np.array(data)
    except Exception:  # lengths differ, or an item's own methods raise anything
        array = None
    if array is None:
        array = to_array(given, d)
        return array, array
    if array.dtype.kind in "OUSV" and "float8" not in array.dtype.name and "bfloat16" not in array.dtype.name:
        if array.dtype.kind == "O" and all(isinstance(x, (int, float, complex, np.generic)) for x in array.ravel()):
            if d is None and any(isinstance(x, (float, complex)) for x in array.ravel()):
                array = array.astype(complex if any(isinstance(x, complex) for x in array.ravel()) else float)
                return array, data
            if array.size and (d is None or d.category == 1):
                raise ValueError("Overflow when unpacking long long")
            return (array != 0 if d and d.category == 0 else array.astype(np.float64)), data
        array = to_array(given, d)
        return array, array
    return array, data


def _convert_data(data, dtype) -> tuple[np.ndarray, dtypes.dtype]:
    """Python data of any kind as an array that holds it until it is cast to a dtype, and that dtype."""
    classes = _classes_of_items(data) if isinstance(data, (list, tuple)) else set()
    has_tensors = any(issubclass(cls, call.Tensor) for cls in classes)
    if dtype is None and (has_tensors or any(issubclass(cls, (np.generic, np.ndarray)) for cls in classes)):
        dtype = _infer_from_items(data, classes)
    array, data = _as_array(data, dtype, has_tensors)
    if dtype is None and array.size == 0 and not isinstance(data, np.ndarray) and array.dtype.kind == "f":
        dtype = get_default_dtype()
    return array, dtype or _infer_dtype(array, data)


def _is_storage(data) -> bool:
    """True if the data is a storage; the storage classes are imported only if one exists."""
    return data.__class__.__name__.endswith("Storage") and hasattr(data, "_tensor")


def _has_host_dlpack(data) -> bool:
    """True if the data is another library's host array with DLPack support."""
    return not isinstance(data, (list, tuple, int, float, complex, np.ndarray, np.generic)) and hasattr(
        data, "__dlpack__"
    )


def _is_cuda_array(data) -> bool:
    """True if the data is another library's array on a CUDA device."""
    return not isinstance(data, (list, tuple, int, float, complex, np.ndarray, np.generic)) and is_foreign(data)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """Returns a new tensor with a copy of data.

    Args:
        data: A number, a nested sequence, a NumPy array or a tensor.
        dtype: The dtype. Default: int64 for integers, the default dtype for floats, or that of the array.
        device: The device. Default: the default device.
        requires_grad: Whether autograd records operations on the tensor. Default: ``False``.
        pin_memory: Whether the copy is in page-locked memory. Default: ``False``.

    Raises:
        ValueError: A sequence is ragged.
        TypeError: An element is not a number.
        RuntimeError: `pin_memory` is set without a CUDA device.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])

    See also:
        `torch.as_tensor`, `torch.from_numpy`.
    """
    try:
        if OVERRIDES and not MODE.plain:  # which no class overrides
            with torch_function_disabled():
                return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
        if GLOBALS["INTERCEPTORS"]:
            given = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "pin_memory": pin_memory}
            if (found := call_function_mode(tensor, (data,), given)) is not NotImplemented:
                return found
        dtype = None if dtype is None else as_argument(dtype, "tensor")
        if TRACES and (trace := THREAD.trace) and (found := trace.tensor(data, dtype, device)) is not None:
            return set_requires_grad(found, requires_grad)
        if pin_memory:
            CALLBACKS.check_pinning(device)
            return set_requires_grad(CALLBACKS.pin_memory(tensor(data, dtype=dtype, device=device)), requires_grad)
        if isinstance(data, np.ndarray):
            _dtype_of_numpy_array(data)
        if isinstance(data, call.Tensor) or _is_cuda_array(data) or _has_host_dlpack(data):
            shared: Any = data
            if not isinstance(data, call.Tensor):
                shared = from_foreign(data) if _is_cuda_array(data) else from_dlpack(data)
            out = shared.detach().clone()
            out = out.to(device=device, dtype=dtype)
            return set_requires_grad(out, requires_grad)
        if _is_storage(data):
            from .typed_storage import flat_tensor_of

            flat = flat_tensor_of(
                data, dtype or getattr(data, "dtype", None) or dtypes.int64
            )  # on the storage's memory
            return set_requires_grad(flat if device is None else flat.to(device), requires_grad)
        if not isinstance(data, (list, tuple, np.ndarray, np.generic, int, float, complex)):
            data = _convert_foreign(data)
            if isinstance(data, call.Tensor):
                return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        plain = from_plain_items(data, dtype) if data.__class__ is list or data.__class__ is tuple else None
        array, d = _convert_data(data, dtype) if plain is None else plain
        if array.dtype != d.np and array.size and not isinstance(data, (np.ndarray, np.generic)):
            _check_value_range(array, d)
        table = _default_kernel_table(device)
        if array.dtype != d.np or not array.ndim:
            array = opaque_dtypes.cast(array, d) if d.np.kind == "V" else run_quietly(array.astype, d.np)
        array = np.ascontiguousarray(array) if array.ndim else array
        out = call.wrap_array(table, table.from_numpy(array), d)
        return set_requires_grad(out, requires_grad)
    except Exception:
        filter_traceback()
        raise


def _check_value_range(array: np.ndarray, d) -> None:
    """The errors for Python numbers that a dtype does not hold."""
    if d.name in dtypes.OPAQUE:
        if d is not dtypes.float8_e8m0fnu:
            raise RuntimeError("store_scalar: invalid type")
        return
    kind = array.dtype.kind
    if kind == "c" and d.category in (1, 2):
        raise TypeError(
            "must be real number, not complex"
            if d.category == 2
            else "'complex' object cannot be interpreted as an integer"
        )
    if d.category != 1 or kind not in "iuf":
        return
    limits = np.iinfo(d.np)
    # Unsigned dtypes take negative integers of their size.
    low = limits.min if d.is_signed or kind == "f" else -int(limits.max)
    least, most = array.min(), array.max()
    if kind == "u" and int(most) >> 63 and d.np != np.uint64:
        raise ValueError("Overflow when unpacking long long")
    if d.np == np.uint64 and kind == "f":
        raise TypeError("an integer is required")
    if d.np == np.uint64 and least < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if not (least >= low and most <= limits.max) or kind == "f" and most >= 2.0**63:
        raise RuntimeError(f"value cannot be converted to type {d.np.name} without overflow")


def _dtype_of_numpy_array(array: np.ndarray) -> Any:
    """The dtype of a tensor of an array's elements. TypeError where torch has none, ValueError for foreign byte orders,
    and for steps that are negative or no multiple of an element.
    """
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders "
            "is currently not supported."
        )
    d = from_np(array.dtype)
    if not array.flags.forc and any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    return d


def is_read_only_buffer(array: np.ndarray) -> bool:
    """True if the memory of an array that NumPy did not allocate is read-only: bytes, or a file open for reading.
    Memory that NumPy allocated is writable, regardless of the array's flag.
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    return not (array.flags.writeable or array.flags.owndata)


def _suggest_array(value) -> str:
    """End of the message for an object that is no array: the expression that converts it, "" if none is known."""
    if hasattr(value, "to_numpy"):
        return ". Use torch.from_numpy(x.to_numpy()) instead."
    if hasattr(value, "toarray"):
        return ". Use torch.as_tensor(x) for a sparse tensor, or torch.from_numpy(x.toarray())."
    if hasattr(value, "__array_interface__") and not isinstance(value, np.generic):
        return ". Use torch.from_numpy(np.array(x)) instead."
    return ""


def from_numpy(array: np.ndarray) -> Tensor:
    """Returns a CPU tensor on the memory of a NumPy array.

    As in PyTorch, a read-only array gives a warning and a tensor that can write to it, unless its memory is bytes
    or a file.

    Args:
        array: The array.

    Raises:
        TypeError: The object is not an array, or its dtype is not supported.
        ValueError: A stride is negative.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> torch.from_numpy(array).fill_(1.0)
        tensor([1., 1.], dtype=torch.float64)
        >>> array.tolist()
        [1.0, 1.0]

    See also:
        `torch.Tensor.numpy`.
    """
    if GLOBALS["INTERCEPTORS"] and (found := call_function_mode(from_numpy, (array,), {})) is not NotImplemented:
        return found
    if not isinstance(array, np.ndarray):
        numpys = "numpy." if isinstance(array, np.generic) else ""
        raise TypeError(f"expected np.ndarray (got {numpys}{type(array).__name__}){_suggest_array(array)}")
    d = _dtype_of_numpy_array(array)
    write = False
    if not array.flags.writeable:
        import warnings

        write = not is_read_only_buffer(array)

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    table = table_of(device_type("cpu"))
    if d.name in dtypes.OPAQUE:  # ml_dtypes' array of the same bytes
        array = array.view(d.np)
    out = call.wrap_array(table, table.backend.from_foreign_array(array, write), d)
    meta = autograd_meta_of(out)
    meta.fixed = meta.lent = True
    return out


def as_tensor(data, *, dtype=None, device=None) -> Tensor:
    """Returns data as a tensor, on the same memory where dtype and device allow.

    Args:
        data: A tensor, a NumPy array, a number or a nested sequence.
        dtype: The dtype. Default: that of the data.
        device: The device. Default: that of a tensor, else the default device.

    Example:
        >>> x = torch.tensor([1.0])
        >>> torch.as_tensor(x) is x
        True

    See also:
        `torch.tensor`, which copies.
    """
    if OVERRIDES and not MODE.plain:
        with torch_function_disabled():
            return as_tensor(data, dtype=dtype, device=device)
    if GLOBALS["INTERCEPTORS"]:
        found = call_function_mode(as_tensor, (data,), {"dtype": dtype, "device": device})
        if found is not NotImplemented:
            return found
    dtype = None if dtype is None else as_argument(dtype, "as_tensor")
    if isinstance(data, call.Tensor):
        return data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (data.flags.writeable or not is_read_only_buffer(data)) and data.dtype.isnative:
        return from_numpy(data).to(device=device or get_default_device(), dtype=dtype)
    if _is_cuda_array(data):
        return from_foreign(data).to(device=device, dtype=dtype)
    if not isinstance(data, (np.ndarray, list, tuple, int, float, complex, np.generic)) and hasattr(data, "__dlpack__"):
        return from_dlpack(data).to(device=device, dtype=dtype)
    if not isinstance(data, (np.ndarray, list, tuple, int, float, complex, np.generic)):
        converted = _convert_foreign(data)
        if isinstance(converted, call.Tensor) or converted is not data and converted.flags.writeable:
            return as_tensor(converted, dtype=dtype, device=device)
        data = converted  # read-only memory, such as a column of a DataFrame, is copied
    return tensor(data, dtype=dtype, device=device)


_NUMBERS = (bool, int, float, complex)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """Returns an object as a tensor, on the same memory where that is possible.

    Args:
        obj: A tensor, an array or DLPack capsule of another library, an object with the buffer protocol (read as
            elements of `dtype`), a storage, a number or a nested sequence.
        dtype: The dtype. Default: that of the object.
        device: The device. Default: that of the object.
        copy: ``True`` always copies, ``False`` never, ``None`` where it must. Default: ``None``.
        requires_grad: Whether autograd records operations on the tensor. Default: ``False``.

    Raises:
        ValueError: ``copy=False``, and a copy is needed.

    Example:
        >>> import array
        >>> torch.asarray(array.array("f", [1.0, 2.0]))
        tensor([1., 2.])

    See also:
        `torch.as_tensor`.
    """
    if OVERRIDES and not MODE.plain:
        with torch_function_disabled():
            return asarray(obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)
    if GLOBALS["INTERCEPTORS"]:
        given = {"dtype": dtype, "device": device, "copy": copy, "requires_grad": requires_grad}
        if (found := call_function_mode(asarray, (obj,), given)) is not NotImplemented:
            return found
    dtype = None if dtype is None else as_argument(dtype, "asarray")
    if isinstance(obj, np.generic) and copy is False:
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    shared = _share_memory_of(obj, dtype)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    where = None if device is None else call._resolve_device(device)
    if where is None and shared.is_cpu and not isinstance(obj, call.Tensor):
        where = get_default_device()
    if copy is False:
        if where is not None and table_of(where) is not shared._tl_kernels:
            raise ValueError(f"can't alias tensor from device '{shared.device}' to '{where}'.")
        if dtype is not None and dtype is not shared.dtype:
            raise ValueError(
                f"can't alias tensor with dtype '{shared.dtype.scalar_name}' into dtype '{dtype.scalar_name}'."
            )
    out = shared.to(device=where, dtype=dtype)
    if copy and out is shared:
        out = out.clone()
    if requires_grad is None:
        return out
    if not requires_grad and not out.is_leaf:
        return out.detach()
    return out.requires_grad_(requires_grad) if out.is_leaf else out


def _share_memory_of(obj, dtype) -> Tensor | None:
    """A tensor on the memory of an object; None for one that is no memory."""
    if isinstance(obj, call.Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, (list, tuple, str, range, np.generic, *_NUMBERS)):
        return None
    if is_capsule(obj) or hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if _is_cuda_array(obj):
        return from_foreign(obj)
    if _is_storage(obj):
        return None
    if hasattr(obj, "__array__"):
        array = np.asarray(obj)
        return from_numpy(array) if array.flags.writeable else None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or get_default_dtype())


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """Returns a 1-d tensor on the memory of an object with the buffer protocol.

    Args:
        buffer: The object.
        dtype: The dtype of the elements.
        count: The number of elements. Default: ``-1``, all.
        offset: The position of the first element, in bytes. Default: 0.
        requires_grad: Whether autograd records operations on the tensor. Default: ``False``.

    Raises:
        ValueError: The object has no buffer, is empty, or ends before the last element.

    Example:
        >>> torch.frombuffer(bytearray([1, 2, 3]), dtype=torch.uint8, offset=1)
        tensor([2, 3], dtype=torch.uint8)

    See also:
        `torch.from_numpy`.
    """
    dtype = as_argument(dtype, "frombuffer")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not view.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object")
    length, size = view.nbytes, dtype.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if offset < 0 or offset >= length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({size})"
            )
        count = (length - offset) // size
    if offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if view.readonly:
        import warnings

        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
            "buffer to protect its data or make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    table = table_of(device_type("cpu"))
    out = call.wrap_array(
        table, table.backend.from_foreign_array(np.frombuffer(buffer, dtype.np, count, offset)), dtype
    )
    return set_requires_grad(out, requires_grad)


def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """Returns a tensor on the memory of an array of another library.

    Args:
        ext_tensor: An object with `__dlpack__`, or a DLPack capsule, which can be taken over once.
        device: The device. Default: that of the array.
        copy: Whether the memory is copied. Default: ``None``, where it must be.

    Raises:
        BufferError: No backend has the array's device.
        RuntimeError: The object is neither, or the capsule was taken over before.

    Example:
        >>> import numpy as np
        >>> torch.from_dlpack(np.ones(2))
        tensor([1., 1.], dtype=torch.float64)

    See also:
        `torch.from_numpy`.
    """
    if device is not None and call._resolve_device(device).type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    out = _from_dlpack(ext_tensor)
    out = out.clone() if copy else out
    return out if device is None else out.to(device)


def legacy_tensor(args, d, device, size=None, kind: str | None = None, any_dtype: bool = False) -> Tensor:
    """torch.Tensor(...), torch.FloatTensor(...) and Tensor.new(...): sizes make an uninitialised tensor, a sequence is
    copied, the memory of a tensor or a storage is shared. `kind` is the device type of the class, by default that of
    `torch.set_default_tensor_type`; the default device counts for nothing. `any_dtype`: a tensor may have another dtype
    than `d`, and be on another device.
    """
    kind = default_tensor_type_device() if kind is None else kind
    if device is not None and len(args) == 1 and isinstance(args[0], call.Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
            "torch.tensor(...) or torch.as_tensor(...) instead."
        )
    if device is not None and call._resolve_device(device).type != kind:
        passed = call._resolve_device(device).type
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: {passed} was passed")
    where = device or kind
    if size is not None:
        args = (Size(size),)
    if len(args) != 1:
        return call.create_tensor("_empty", _parse_legacy_size(args) or (0,), d, device=where)
    given = args[0]
    if _is_storage(given):
        from .typed_storage import flat_tensor_of

        return flat_tensor_of(given, d)
    if isinstance(given, call.Tensor):
        if (given.dtype is not d or given.device.type != kind) and not any_dtype:
            raise TypeError(f"expected a tensor of dtype {d}, device={kind} (got {given.dtype}, device={given.device})")
        return given.detach()
    if given.__class__ is Size:
        return call.create_tensor("_empty", tuple(given), d, device=where)
    if isinstance(given, (list, tuple, np.ndarray, range)):
        return tensor([given] if isinstance(given, np.ndarray) and not given.ndim else given, dtype=d, device=where)
    if isinstance(given, str):
        raise TypeError("new(): invalid data type 'str'")
    if not hasattr(given, "__index__") or isinstance(given, bool):
        if hasattr(given, "__array__") or is_sequence(given):
            return tensor(given, dtype=d, device=where)
        raise TypeError(f"new(): data must be a sequence (got {type(given).__name__})")
    return call.create_tensor("_empty", _parse_legacy_size(args), d, device=where)


def _parse_legacy_size(args) -> tuple[int, ...]:
    for position, n in enumerate(args):
        if not hasattr(n, "__index__"):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error \"type must be "
                f'tuple of ints,but got {type(n).__name__}"'
            )
    return tuple(n.__index__() for n in args)


CALLBACKS.as_tensor = as_tensor


def _pin_new(tensor):
    from .interop import pin_new

    return pin_new(tensor)


def _check_pinning(device=None) -> None:
    from .interop import check_pinning

    check_pinning(device)


CALLBACKS.pin_memory, CALLBACKS.check_pinning = _pin_new, _check_pinning
