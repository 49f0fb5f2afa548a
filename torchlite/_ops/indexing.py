"""Indexing: x[...], x[...] = v, and the ops that implement them."""

from __future__ import annotations

import warnings

import numpy as np

from .._dispatch import (
    KEEPS_DTYPE,
    LEAF,
    MODE,
    REGISTRY,
    VIEW,
    Overlap,
    call,
    function_for,
    in_place_calls,
    memory_layout,
    op,
)
from .._dispatch.autograd_graph import bump_version
from .._dispatch.backend import owner_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import GLOBALS, OVERRIDES
from .._dispatch.error_translation import ARGUMENT_ERRORS, filter_traceback
from .._dispatch.interceptors import call_override
from .._dispatch.memory_overlap import check_in_place, check_no_partial_overlap, has_internal_overlap, has_leaf_base
from .._dispatch.node_names import saved_argument
from .._dispatch.op_record import INPLACE
from .._dispatch.tracing import TRACES, trace_method
from .._dispatch.type_promotion import cast_scalar
from .._tensor import Tensor
from .._types.dtypes import bool_, float64, int64, uint8
from .node_graphs import index_graph

slice_index = op(
    "_slice_index(Tensor input, index)",
    where="",
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, input_shape, index: F._slice_index_backward(g, input_shape, index)},
    node_name=index_graph,
)
op(
    "_slice_index_backward(Tensor input, shape, index)",
    where="",
    shape_fn=lambda input, shape: (shape, input.dtype),
    vjp={"input": lambda F, g, index: F._slice_index(g, index)},
)
take_index = op(
    "_index(Tensor input, index)",
    where="",
    vjp={"input": lambda F, g, input_shape, index: F._index_backward(g, input_shape, index)},
    layout=memory_layout.indexing,
    node_name="IndexBackward0",
    saves_arrays=True,
)
op(
    "_index_backward(Tensor input, shape, index)",
    where="",
    shape_fn=lambda input, shape: (shape, input.dtype),
    vjp={"input": lambda F, g, index: F._index(g, index)},
)
# Besides tensors they save arrays given by the caller, which backward does not free. A second backward is refused
# anyway.


def _setitem_node_name(node):
    """A write by an index: through a view where the index is one of a view."""
    index = saved_argument(node, "index")
    items = index if isinstance(index, tuple) else (index,)
    basic = all(item is None or item is ... or isinstance(item, (int, slice)) for item in items)
    return "torch::autograd::CopySlices" if basic else "IndexPutBackward0"


set_index = op(
    "_setitem(Tensor input, index, Tensor|Number value)",
    where="",
    tags=INPLACE,
    vjp={"input": lambda F, g, index: F._setitem(g, index, 0), "value": lambda F, g, index: F._index(g, index)},
    shape_fn=lambda input: (input.shape, input.dtype),
    overlap=Overlap("unchecked"),
    node_name=_setitem_node_name,
    numbers={"value": True},
    opaque="array",
)

_PLAIN_TENSOR_CLASSES = (Tensor, GLOBALS["Parameter"])
_BASIC = (int, slice, type(None), type(...))
_PLAIN = GLOBALS["PLAIN"]  # classes without `__torch_function__` of their own


def _getitem_view(tensor: Tensor, index):
    """The op's function; the first call creates it and replaces this one."""
    global _getitem_view
    _getitem_view = function_for(slice_index)
    return _getitem_view(tensor, index)


def _getitem_copy(tensor: Tensor, index):
    """Like `_getitem_view`."""
    global _getitem_copy
    _getitem_copy = function_for(take_index)
    return _getitem_copy(tensor, index)


def _override(name: str, *args):
    """The result of `__torch_function__` of a tensor, of one in its index, or of a value; else NotImplemented."""
    index = args[1] if args[1].__class__ in (tuple, list) else (args[1],)
    relevant = (args[0], *index, *args[2:])
    if _PLAIN.issuperset(map(type, relevant)):
        return NotImplemented
    return call_override(getattr(Tensor, name), args, None, relevant)


def getitem(tensor: Tensor, index):
    """x[index]."""
    try:
        if TRACES and (found := trace_method("__getitem__", tensor, index)) is not NotImplemented:
            return found
        if OVERRIDES and (found := _override("__getitem__", tensor, index)) is not NotImplemented:
            return found
        cls = index.__class__
        if (cls is int or cls is slice and index.step is None) and tensor._tl_array.ndim:
            return _getitem_view(tensor, (index,))
        basic, advanced = split_basic_and_advanced(tensor, index)
        out = _getitem_view(tensor, basic) if basic else tensor
        if advanced is None:
            return out if basic else tensor.alias()
        if GLOBALS["DISPATCHES"]:
            if tensor._tl_dispatches and not out._tl_dispatches:  # a handler returned a plain tensor
                advanced = tuple(_raw_index(out, item) for item in advanced)
            if any(isinstance(item, Tensor) for item in advanced):
                return call.slow_path(take_index, function_for(take_index), (out, advanced), {})
        return _getitem_copy(out, advanced)
    except Exception as error:
        # An index of a class that is no Tensor and overrides `__torch_function__`.
        if error.__class__ is IndexError and (found := _override("__getitem__", tensor, index)) is not NotImplemented:
            return found
        filter_traceback()
        raise


def setitem(tensor: Tensor, index, value) -> None:
    """x[index] = value."""
    try:
        if TRACES and trace_method("__setitem__", tensor, index, value) is not NotImplemented:
            return
        if OVERRIDES and _override("__setitem__", tensor, index, value) is not NotImplemented:
            return
        if not isinstance(value, (Tensor, int, float, complex)):
            if not isinstance(value, np.generic):
                from .._tensor.nested_sequences import type_name

                raise TypeError(f"can't assign a {type_name(value)} to a {tensor.type()}")
            value = value.item()
        if value.__class__ is int and not -(1 << 63) <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        if value.__class__ is complex and not tensor.dtype.is_complex:
            cast_scalar(value, float64 if tensor.dtype.itemsize == 2 and tensor.dtype.category == 2 else tensor.dtype)
        cls = index.__class__
        if cls is bool:  # False selects nothing, and True a view that has one dimension more
            if not index:
                return
            basic, advanced = (None,), None
        elif (cls is int or cls is slice and index.step is None) and tensor._tl_array.ndim:
            basic, advanced = (index,), None
        else:
            if cls is tuple or cls is Tensor and index.dtype is uint8:
                _refuse_byte_mask(index, value)
            basic, advanced = split_basic_and_advanced(tensor, index)
        if isinstance(value, Tensor) and (
            value.dtype is not tensor.dtype or value._tl_kernels is not tensor._tl_kernels
        ):
            if advanced is not None and value.dtype is not tensor.dtype and not _fills_mask(advanced, value):
                place = (_getitem_view(tensor, basic) if basic else tensor).detach().clone()
                in_place_calls.run_in_place(set_index, (place, advanced, value.to(place)), {})  # raises first
                raise RuntimeError(
                    "Index put requires the source and destination dtypes match, got "
                    f"{tensor.dtype.scalar_name} for the destination and {value.dtype.scalar_name} for the source."
                )
            # Between devices as `copy_` of a view goes, but elements are put only from the same.
            moves = advanced is None or value._tl_array.ndim == 0
            value = value.to(device=tensor.device if moves else None, dtype=tensor.dtype)
        if (
            isinstance(value, Tensor)
            and owner_of(value._tl_array) is owner_of(tensor._tl_array)
            or tensor._tl_array.base is not None
            and has_internal_overlap(tensor._tl_array)
            or advanced is not None
            and any(_lies_in(i, tensor) for i in advanced)
        ):
            value = _check_overlap(tensor, basic, advanced, value)
        if advanced is None:
            if tensor._tl_node is LEAF and MODE.grad and basic != (...,):
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
            target, places = tensor, basic or (...,)
        elif basic and tensor._takes_records:  # a view of it may be none
            tensor._set_items(index, value)
            return
        else:
            target, places = _getitem_view(tensor, basic) if basic else tensor, advanced
        if not _write_by_kernel_only(target, places, value):
            in_place_calls.run_in_place(set_index, (target, places, value), {})
    except Exception as error:
        if error.__class__ in (IndexError, TypeError) and (
            _override("__setitem__", tensor, index, value) is not NotImplemented
        ):
            return
        filter_traceback()
        raise


def _fills_mask(advanced: tuple, value: Tensor) -> bool:
    """True for one value under one mask, which PyTorch fills with a number."""
    arrays = [item for item in advanced if not isinstance(item, slice)]
    return value.numel() == 1 and len(arrays) == 1 and _is_mask(arrays[0])


def _refuse_byte_mask(index, value) -> None:
    """RuntimeError for one mask of bytes under which one value is written; it may select elements for more values."""
    items = index if index.__class__ is tuple else (index,)
    arrays = [item for item in items if not isinstance(item, _BASIC)]
    if len(arrays) == 1 and arrays[0].__class__ is Tensor and arrays[0].dtype is uint8:
        if arrays[0].ndim and (not isinstance(value, Tensor) or value.numel() == 1):
            raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")


def _write_by_kernel_only(target: Tensor, index: tuple, value) -> bool:
    """True if the kernel alone wrote the elements: no interceptor is active and nothing is recorded."""
    watched = GLOBALS["INTERCEPTORS"] or GLOBALS["DISPATCHES"] or GLOBALS["WRITE_CHECKS"] or GLOBALS["SPARSE"]
    if (
        watched
        or target.__class__ not in _PLAIN_TENSOR_CLASSES
        or target._tl_signs
        or MODE.grad
        and (target._tl_node is not None or target._tl_meta is not None and has_leaf_base(target))
    ):
        return False
    write = getattr(target._tl_kernels, "_setitem_", None)  # an in-place kernel, which a backend may lack
    if write is None:
        return False
    if value.__class__ is int or value.__class__ is float:
        value = cast_scalar(value, target.dtype, infinite=True)
    elif value.__class__ not in _PLAIN_TENSOR_CLASSES or value._tl_signs or MODE.grad and value._tl_node is not None:
        return False
    else:
        value = value._tl_array
    try:
        call.GLOBALS["quiet_run"](write, target._tl_array, index, value)
    except ARGUMENT_ERRORS:  # the op itself raises PyTorch's error
        return False
    bump_version(target)
    return True


def _check_overlap(tensor: Tensor, basic, advanced, value):
    """The value to write, a copy if it lies on elements to be written and is broadcast to more of them.

    PyTorch's errors are raised where the elements to be written share places with each other, or with the value.
    """
    raw = tensor._tl_kernels._slice_index(tensor._tl_array, basic) if basic else tensor._tl_array
    place = call.wrap_array(tensor._tl_kernels, raw, tensor.dtype)
    if advanced is not None:
        check_in_place(REGISTRY["index_put"], [place, advanced, value, False])
        for i in advanced:
            if _lies_in(i, tensor) and (i.dtype.kind != "b" or isinstance(value, Tensor) and value.ndim):
                check_no_partial_overlap(place, call.wrap_array(tensor._tl_kernels, i), True)
        return value
    if isinstance(value, Tensor) and _without_leading_ones(value.shape) != _without_leading_ones(place.shape):
        check_in_place(CALLBACKS.copy, [place, None])
        return value if value.numel() == 1 else value.clone()
    check_in_place(CALLBACKS.copy, [place, value])
    return value


def _lies_in(index, tensor: Tensor) -> bool:
    """True if an index is an array in the memory of a tensor."""
    return index.__class__ is tensor._tl_array.__class__ and owner_of(index) is owner_of(tensor._tl_array)


def _without_leading_ones(shape):
    first = next((d for d, n in enumerate(shape) if n != 1), len(shape))
    return tuple(shape[first:])


def split_basic_and_advanced(tensor: Tensor, index) -> tuple[tuple, tuple | None]:
    """An index as a basic one (a view) and, when there are arrays, an advanced one for the result of the first.

    In PyTorch integers select before arrays index, so the two steps differ from NumPy's single one.
    """
    items = index if index.__class__ is tuple else _as_tuple(index)
    for i in items:
        cls = i.__class__
        if cls is slice:
            if (
                (i.step is not None and (i.step.__class__ is not int or i.step <= 0))
                or i.start.__class__ is Tensor
                or i.stop.__class__ is Tensor
            ):
                break
        elif cls not in _BASIC:
            break
    else:
        return _check_index_count(tensor, items, index.__class__ is tuple), None
    if cls is Tensor and len(items) == 1 and (i.dtype is int64 or i.dtype is bool_) and i._tl_level is None:
        if 0 < i._tl_array.ndim and (1 if i.dtype is int64 else i._tl_array.ndim) <= tensor._tl_array.ndim:
            if not i._tl_array.size and i.dtype is bool_:
                _check_empty_mask(tensor._tl_array.shape, i._tl_array.shape, 0)
            return (), (_raw_index(tensor, i),)
    items = _expand_ellipsis(tensor, [_normalize_index_item(i) for i in items])
    basic: list = []
    advanced: list = []
    for item in items:
        if isinstance(item, bool):
            basic.append(None)
            advanced.append(np.full(1, 0) if item else np.empty(0, np.int64))
        elif item is None or isinstance(item, (slice, int)):
            basic.append(item)
            if not isinstance(item, int):
                advanced.append(slice(None))
        else:
            masks = _is_mask(item)
            if masks and 0 in item.shape:
                _check_empty_mask(tensor._tl_array.shape, tuple(item.shape), len(basic) - basic.count(None))
            basic += [slice(None)] * (item.ndim if masks else 1)
            advanced.append(item)
    trivial = all(isinstance(b, slice) and b == slice(None) for b in basic)
    if not any(not isinstance(a, slice) for a in advanced):
        return tuple(basic), None
    while isinstance(advanced[-1], slice):
        advanced.pop()
    return () if trivial else tuple(basic), tuple(_raw_index(tensor, a) for a in advanced)


def _as_tuple(index):
    """Convert a short list that contains sequences, slices or tensors to a tuple, as older NumPy does."""
    if (
        index.__class__ is list
        and len(index) < 32
        and any(isinstance(i, (list, tuple, slice, Tensor)) or i is None or i is Ellipsis for i in index)
    ):
        return tuple(index)
    return (index,)


def _check_index_count(tensor, items, several: bool):
    ellipses = items.count(...)
    used = len(items) - items.count(None) - ellipses
    if used and not tensor._tl_array.ndim and not several:
        if items[0].__class__ is slice:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
            "a 0-dim tensor to a number"
        )
    if used > tensor._tl_array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {tensor._tl_array.ndim}")
    return items if ellipses < 2 else tuple(_expand_ellipsis(tensor, list(items)))


INDEX_DTYPES = frozenset(("int64", "int32", "bool", "uint8"))


def _check_empty_mask(shape, mask, axis: int) -> None:
    """Raise for a mask without elements that does not fit, which NumPy takes."""
    for at, size in enumerate(mask, axis):
        if at < len(shape) and size != shape[at]:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {at - axis} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {at}"
            )


def _is_mask(item) -> bool:
    return item.dtype == np.bool_ if isinstance(item, np.ndarray) else item.dtype.name == "bool"


def _normalize_index_item(item):
    """One index item as an int, slice, None, Ellipsis, bool, Tensor or array."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return item
    if isinstance(item, slice):
        start, stop, step = (None if p is None else p.__index__() for p in (item.start, item.stop, item.step))
        if step is not None and step <= 0:
            raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
        return slice(start, stop, step)
    if isinstance(item, Tensor):
        if item.dtype.category >= 2 or item._tl_array.ndim and item.dtype.name not in INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if item._tl_level is not None:
            return item
        if item.dtype.name == "uint8":
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=5,
            )
            item = item.to(bool_)
        if item._tl_array.ndim == 0 and item.dtype is bool_ and not item.is_meta:
            return bool(item.item())
        if item._tl_array.ndim == 0 and item.dtype.name != "bool" and not item.is_meta:
            return int(item.item())
        return item
    if isinstance(item, (list, tuple, range)):
        from .._tensor.creation import tensor as make

        made = make(list(item)) if len(item) else make(np.empty(0, np.int64))
        return _normalize_index_item(made) if made._tl_array.ndim else made
    if isinstance(item, np.ndarray):
        if item.dtype.kind not in "iub":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return int(item) if item.ndim == 0 and item.dtype.kind != "b" else item
    if hasattr(item, "__index__"):
        return item.__index__()
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    if hasattr(item, "__array__"):  # a pandas Series or Index
        return _normalize_index_item(np.asarray(item))
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(item).__name__})"
    )


def _is_no_full_slice(item):
    return item.__class__ is not slice or item != slice(None)


def _expand_ellipsis(tensor, items):
    used = sum(
        0 if i is None or i is Ellipsis or isinstance(i, bool) else i.ndim if hasattr(i, "ndim") and _is_mask(i) else 1
        for i in items
    )
    ndim = tensor._tl_array.ndim
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    places = [p for p, i in enumerate(items) if i is Ellipsis]
    if not places:
        return items
    after = [i for i in items[places[0] + 1 :] if i is not Ellipsis]
    # Each ellipsis stands for as many dimensions as the index leaves: no dimension is left for an item behind a second.
    # A full slice needs none.
    if len(places) > 1 and ndim > used and any(i is not Ellipsis and _is_no_full_slice(i) for i in items[places[1] :]):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {2 * ndim - used})"
        )
    return items[: places[0]] + [slice(None)] * (ndim - used) + after


def _raw_index(tensor, item):
    if isinstance(item, Tensor):
        # Inside `vmap`, which knows what to do with it, or for `__torch_dispatch__`.
        if item._tl_level is not None or item._tl_dispatches or tensor._tl_dispatches:
            return item
        return item._tl_array if item._tl_kernels is tensor._tl_kernels else item.to(tensor.device)._tl_array
    if isinstance(item, np.ndarray):
        from .._tensor.creation import from_numpy

        return from_numpy(item) if tensor._tl_dispatches else tensor._tl_kernels.from_numpy(item)
    return item


for _function in (getitem, setitem):  # names that a function mode reads
    _function.__name__, _function.__qualname__ = f"__{_function.__name__}__", f"Tensor.__{_function.__name__}__"
setattr(Tensor, "__getitem__", getitem)  # noqa: B010  a type checker takes the plain form for an index
setattr(Tensor, "__setitem__", setitem)  # noqa: B010
