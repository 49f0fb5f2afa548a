"""Creation ops: constants, ranges, index pairs, grids; and tensors like others.

The public functions are composites over the creation kernels (`_empty`, `_full`, `_arange` …), which `call.create`
finds by device.
"""

from __future__ import annotations

import math

import numpy as np

from .._dispatch import NONDIFF, REGISTRY, call, composite, op, out_variants
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.memory_layout import (
    apply_rule_to_ufuncs,
    channels_last_strides,
    infer_dense_strides,
    strides_from_dim_order,
    with_strides,
)
from .._dispatch.shape_and_value_checks import set_requires_grad, storage_nbytes_for
from .._dispatch.shapes import contiguous_strides, tril_size
from .._dispatch.type_promotion import cast_scalar
from .._settings.backend_flags import FLAGS
from .._types.devices import device as device_type
from .._types.dtypes import (
    as_argument,
    bool_,
    complex32,
    complex64,
    float8_e8m0fnu,
    get_default_dtype,
    int64,
    promote_types,
)
from .._types.dtypes import dtype as dtype_type
from .._types.layouts import channels_last, channels_last_3d, contiguous_format, strided

_TAIL = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"

op("_linspace(start, end, steps, dtype)", where="", tags=NONDIFF, shape_fn=lambda steps, dtype: ((steps,), dtype))
op("_logspace(start, end, steps, base, dtype)", where="", tags=NONDIFF, shape_fn=lambda steps, dtype: ((steps,), dtype))
op("_identity_matrix(n, m, dtype)", where="", tags=NONDIFF, shape_fn=lambda n, m, dtype: ((n, m), dtype))
op(
    "_tril_indices(rows, columns, offset, dtype)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda rows, columns, offset, dtype: ((2, tril_size(rows, columns, offset)), dtype),
)
op(
    "_triu_indices(rows, columns, offset, dtype)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda rows, columns, offset, dtype: ((2, rows * columns - tril_size(rows, columns, offset - 1)), dtype),
)


# --- arguments ------------------------------------------------------------------------------------


def _check_size(name: str, size) -> tuple[int, ...]:
    """A checked shape."""
    for position, n in enumerate(size):
        if n.__class__ is int:
            if n < 0:
                raise RuntimeError(
                    f"{name}: Dimension size must be non-negative."
                    if name == "zeros"
                    else f"Trying to create tensor with negative dimension {n}: {list(size)}"
                )
        elif isinstance(n, (str, float, tuple, list)) or not hasattr(type(n), "__index__"):
            if position == 0 and len(size) == 1:
                raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(n).__name__}")
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {position + 1} with error \"type must "
                f'be tuple of ints,but got {type(n).__name__}"'
            )
        else:
            return _check_size(name, tuple(m.__index__() for m in size))
    return tuple(size)


def _resolve_dtype(name: str, dtype, default) -> dtype_type:
    return default if dtype is None else dtype if dtype.__class__ is dtype_type else as_argument(dtype, name)


def _reject_sparse_layout(layout, out=None) -> None:
    if _is_sparse(layout, out):
        raise RuntimeError("full(...) is not implemented for sparse layout")


def _is_sparse(layout, out=None) -> bool:
    """True if a sparse layout is requested. RuntimeError if `out` has another layout."""
    if layout is not None and out is not None and out.layout is not layout:
        asked, have = ("".join(p.capitalize() for p in x.name.split("_")) for x in (layout, out.layout))
        raise RuntimeError(
            f"layout {asked.replace('Coo', '')} does not match layout of out parameter ({have.replace('Coo', '')})"
        )
    return layout is not None and layout is not strided


def _to_python_number(value):
    return value.item() if isinstance(value, (call.Tensor, np.generic)) else value


def _infer_dtype(*values) -> dtype_type:
    """int64 for integers, the default dtype when any is a float, its complex dtype when any is complex."""
    found = bool_
    for value in values:
        if isinstance(value, np.generic):
            value = value.item()
        kind = value.dtype if isinstance(value, call.Tensor) else None
        if kind is None:
            kind = (
                bool_
                if isinstance(value, bool)
                else int64
                if isinstance(value, int)
                else get_default_dtype().to_complex()
                if isinstance(value, complex)
                else get_default_dtype()
            )
        found = promote_types(found, kind)
    return found


def _out_dtype(out, dtype, default):
    """Return `out`'s dtype, or `default` without `out`. Raise RuntimeError if `dtype` differs from `out`'s."""
    if out is None:
        return default
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    return out.dtype


def _new_strides(size, memory_format, like=None) -> tuple[int, ...] | None:
    """The strides of a new tensor; None for the usual ones."""
    if memory_format is channels_last or memory_format is channels_last_3d:
        rank = 4 if memory_format is channels_last else 5
        if len(size) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {str(memory_format).rpartition('.')[2]} format")
        apply_rule_to_ufuncs()
        return channels_last_strides(size)
    if memory_format is contiguous_format or like is None or 1 not in size and like.is_contiguous():
        return None
    found = infer_dense_strides(size, like.stride())
    return None if found == contiguous_strides(size) else found


def _create_by_kernel(kernel: str, size, *args, strides=None, device=None, requires_grad=False, out=None):
    """Create by a kernel whose last argument is the dtype, with the given dense strides."""
    if requires_grad and args[-1].category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if strides is None:
        if out is None:
            return call.create_tensor(kernel, size, *args, device=device, requires_grad=requires_grad)
        made = call.create_tensor(kernel, size, *args, device=_resolve_device(device, out), requires_grad=requires_grad)
        return out_variants.write_out(REGISTRY[kernel], made, out)
    order = sorted(range(len(size)), key=lambda d: (-strides[d], size[d] != 1, d))
    made = call.create_tensor(kernel, tuple(size[d] for d in order), *args, device=device)
    table = made._tl_kernels
    made._tl_array = with_strides(
        table, table.permute(made._tl_array, tuple(order.index(d) for d in range(len(order)))), strides
    )
    return set_requires_grad(made, requires_grad)


def _resolve_device(device, out):
    """The device of a new tensor's values: the requested one, else that of `out`."""
    return out.device if device is None and out is not None else device


def _write_into_out(record, made, out):
    """Write values to `out`, reshaped if it has as many elements; otherwise `out` is resized."""
    if hasattr(out, "_tl_array") and out.numel() == made.numel():
        made = made.reshape(out.shape)
    return out_variants.write_out(record, made, out)


# --- constants ------------------------------------------------------------------------------------


@composite(
    f"zeros(*size, out=None, {_TAIL})", where="torch", kwarg_aliases={"shape": "size"}, array_api_first=True,
    varargs_required=True,
)  # fmt: skip
def zeros(F, size, out, dtype, layout, device, requires_grad):
    """Returns a tensor of zeros.

    Args:
        size: The sizes, as integers or as one sequence.

    Example:
        >>> torch.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])

    See also:
        `torch.zeros_like`, `torch.Tensor.new_zeros`.
    """
    dtype = _resolve_dtype("zeros", dtype, None)
    if _is_sparse(layout, out):
        return CALLBACKS.sparse("empty")(_check_size("zeros", size), dtype, device, layout, requires_grad)
    return _create_by_kernel(
        "_full",
        _check_size("zeros", size),
        0,
        _out_dtype(out, dtype, dtype or get_default_dtype()),
        device=device,
        requires_grad=requires_grad,
        out=out,
    )


@composite(
    f"ones(*size, out=None, {_TAIL})", where="torch", kwarg_aliases={"shape": "size"}, array_api_first=True,
    varargs_required=True,
)  # fmt: skip
def ones(F, size, out, dtype, layout, device, requires_grad):
    """Returns a tensor of ones.

    Args:
        size: The sizes, as integers or as one sequence.

    Example:
        >>> torch.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])

    See also:
        `torch.ones_like`, `torch.Tensor.new_ones`.
    """
    _reject_sparse_layout(layout, out)
    dtype = _resolve_dtype("ones", dtype, None)
    return _create_by_kernel(
        "_full",
        _check_size("ones", size),
        1,
        _out_dtype(out, dtype, dtype or get_default_dtype()),
        device=device,
        requires_grad=requires_grad,
        out=out,
    )


@composite(
    f"empty(*size, out=None, {_TAIL}, memory_format=None)",
    varargs_required=True,
    where="torch",
    kwarg_aliases={"shape": "size"},
    array_api_first=True,
)
def empty(F, size, out, dtype, layout, device, requires_grad, memory_format):
    """Returns a tensor whose elements are not initialized.

    Args:
        size: The sizes, as integers or as one sequence.
        memory_format: The order of the elements in memory. Default: `torch.contiguous_format`.

    Example:
        >>> torch.empty(2, 3).shape
        torch.Size([2, 3])

    See also:
        `torch.empty_like`.
    """
    dtype = _resolve_dtype("empty", dtype, None)
    size = _check_size("empty", size)
    if _is_sparse(layout, out):
        return CALLBACKS.sparse("empty")(size, dtype, device, layout, requires_grad)
    kind = _out_dtype(out, dtype, dtype or get_default_dtype())
    if out is not None:
        return _empty_into(out, size, memory_format, device, requires_grad)
    return _create_by_kernel(
        "_empty", size, kind, strides=_new_strides(size, memory_format), device=device, requires_grad=requires_grad
    )


def _empty_into(out, size, memory_format, device, requires_grad):
    """Resize `out`. What it holds stays, but for deterministic algorithms."""
    if memory_format is not None:
        raise RuntimeError("'memory_format' argument is incompatible with 'out' tensor argument")
    if device is not None and (asked := device_type(device).type) != out.device.type:
        raise RuntimeError(f"device type {asked} does not match device type of out parameter ({out.device.type})")
    if out.shape != size:
        out.resize_(size)
    if FLAGS.deterministic and FLAGS.fill_uninitialized_memory:
        out_variants.fill_uninitialized(out)
    return set_requires_grad(out) if requires_grad else out


def _fill_value(value, dtype, size=()):
    """The fill value, checked for the dtype; a one-element tensor may be infinite."""
    number = _to_python_number(value)
    # PyTorch looks at floats alone: it takes the whole number 0, which the dtype lacks.
    is_float = number.__class__ is float and not math.isnan(number)
    if dtype is float8_e8m0fnu and is_float and not 2.0**-127 <= number <= 2.0**127:
        raise RuntimeError(f"value cannot be converted to type {dtype.c_name} without overflow")
    return cast_scalar(number, dtype, infinite=math.prod(size) == 1)


@composite(
    f"full(size, fill_value, *, out=None, {_TAIL})",
    where="torch",
    kwarg_aliases={"shape": "size"},
    array_api_first=True,
)
def full(F, size, fill_value, out, dtype, layout, device, requires_grad):
    """Returns a tensor filled with a value.

    Args:
        size: The sizes.
        fill_value: The value, a number or a 0-d tensor.
        dtype: The dtype of the result. Default: by the value: bool, int64, or the default dtype.

    Example:
        >>> torch.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]])

    See also:
        `torch.full_like`.
    """
    _reject_sparse_layout(layout, out)
    if isinstance(size, int):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    if isinstance(fill_value, call.Tensor) and fill_value.ndim:
        raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not Tensor")
    dtype = _resolve_dtype("full", dtype, None)
    inferred = dtype or _infer_dtype(fill_value)
    if dtype is None and inferred is complex32:  # the default dtype is float16
        inferred = complex64
    dtype = _out_dtype(out, dtype, inferred)
    size = _check_size("full", tuple(size))
    return _create_by_kernel(
        "_full", size, _fill_value(fill_value, dtype, size), dtype, device=device, requires_grad=requires_grad, out=out
    )


@composite(f"scalar_tensor(s, *, {_TAIL})", where="torch")
def scalar_tensor(F, s, dtype, device, requires_grad):
    """Returns a 0-d tensor with a value.

    Args:
        s: The number.
        dtype: The dtype of the result. Default: the default dtype.

    Example:
        >>> torch.scalar_tensor(2)
        tensor(2.)

    See also:
        `torch.tensor`.
    """
    dtype = dtype or get_default_dtype()
    return _create_by_kernel("_full", (), _fill_value(s, dtype), dtype, device=device, requires_grad=requires_grad)


# --- memory layouts -------------------------------------------------------------------------------


def _with_strides(size, stride, dtype, device, requires_grad):
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    extent = storage_nbytes_for(size, stride, dtype.itemsize) // dtype.itemsize
    made = call.create_tensor("_empty", (extent,), dtype, device=device)
    made._tl_array = made._tl_kernels._as_strided(made._tl_array, size, stride, 0)
    return set_requires_grad(made, requires_grad)


@composite(f"empty_strided(size, stride, *, {_TAIL})", where="torch")
def empty_strided(F, size, stride, dtype, device, requires_grad):
    """Returns a tensor of given strides whose elements are not initialized.

    Args:
        size: The sizes.
        stride: The strides, in elements.

    Example:
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)

    See also:
        `torch.as_strided`.
    """
    return _with_strides(
        _check_size("empty_strided", size),
        stride,
        _resolve_dtype("empty_strided", dtype, get_default_dtype()),
        device,
        requires_grad,
    )


@composite(f"empty_permuted(size, physical_layout, *, {_TAIL})", where="torch")
def empty_permuted(F, size, physical_layout, dtype, device, requires_grad):
    """Returns a dense tensor of a given order in memory whose elements are not initialized.

    Args:
        size: The sizes.
        physical_layout: The dimensions from the outermost to the innermost in memory.

    Raises:
        RuntimeError: A dimension is repeated or absent.

    Example:
        >>> torch.empty_permuted((2, 3), (1, 0)).stride()
        (1, 2)
    """
    size = _check_size("empty_permuted", size)
    order = tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index {i}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    return _create_by_kernel(
        "_empty",
        size,
        _resolve_dtype("empty_permuted", dtype, get_default_dtype()),
        strides=strides_from_dim_order(tuple(reversed(order)), size) if order else None,
        device=device,
        requires_grad=requires_grad,
    )


# --- like another tensor --------------------------------------------------------------------------

_LIKE = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None"


def _create_like(input, kernel: str, value, dtype, layout, device, requires_grad, memory_format):
    dtype = _resolve_dtype(kernel, dtype, input.dtype)
    size = input._tl_array.shape
    if _is_sparse(layout) and not value:
        return CALLBACKS.sparse("empty")(size, dtype, device or input.device, layout, requires_grad)
    _reject_sparse_layout(layout)
    args = (dtype,) if value is None else (_fill_value(value, dtype, size), dtype)
    return _create_by_kernel(
        kernel,
        size,
        *args,
        strides=_new_strides(size, memory_format, input),
        device=input._tl_kernels.device if device is None else device,
        requires_grad=requires_grad,
    )


def _declare_like(name: str, kernel: str, value, doc: str) -> None:
    @composite(f"{name}(Tensor input, *, {_LIKE})", where="torch", doc=doc)
    def like(F, input, dtype, layout, device, requires_grad, memory_format):
        return _create_like(input, kernel, value, dtype, layout, device, requires_grad, memory_format)


_declare_like(
    "empty_like",
    "_empty",
    None,
    """Returns a tensor whose elements are not initialized, with the shape, dtype, device and order in memory of
    another.

    Args:
        input: The other tensor.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.empty_like(torch.tensor([1, 2])).shape
        torch.Size([2])

    See also:
        `torch.empty`.
    """,
)
_declare_like(
    "zeros_like",
    "_full",
    0,
    """Returns a tensor of zeros, with the shape, dtype, device and order in memory of another.

    Args:
        input: The other tensor.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.zeros_like(torch.tensor([1, 2]))
        tensor([0, 0])

    See also:
        `torch.zeros`.
    """,
)
_declare_like(
    "ones_like",
    "_full",
    1,
    """Returns a tensor of ones, with the shape, dtype, device and order in memory of another.

    Args:
        input: The other tensor.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.ones_like(torch.tensor([1, 2]))
        tensor([1, 1])

    See also:
        `torch.ones`.
    """,
)


@composite(f"full_like(Tensor input, fill_value, *, {_LIKE})", where="torch")
def full_like(F, input, fill_value, dtype, layout, device, requires_grad, memory_format):
    """Returns a tensor filled with a value, with the shape, dtype, device and order in memory of another.

    Args:
        input: The other tensor.
        fill_value: The value, a number or a 0-d tensor.
        dtype: The dtype of the result. Default: the input's.
        layout: The layout of the result. Default: the input's.

    Example:
        >>> torch.full_like(torch.tensor([1, 2]), 7)
        tensor([7, 7])

    See also:
        `torch.full`.
    """
    return _create_like(
        input, "_full", _to_python_number(fill_value), dtype, layout, device, requires_grad, memory_format
    )


_NEW = "dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False"


def _declare_new(name: str, kernel: str, value, doc: str) -> None:
    @composite(f"{name}(Tensor input, *size, {_NEW})", where="Tensor", doc=doc, varargs_required=True)
    def new(F, input, size, dtype, device, requires_grad, layout):
        dtype, size = _resolve_dtype(name, dtype, input.dtype), _check_size(name, size)
        if _is_sparse(layout) and not value:
            return CALLBACKS.sparse("empty")(size, dtype, device or input.device, layout, requires_grad)
        _reject_sparse_layout(layout)
        return _create_by_kernel(
            kernel,
            size,
            *(() if value is None else (value,)),
            dtype,
            device=input._tl_kernels.device if device is None else device,
            requires_grad=requires_grad,
        )


_declare_new(
    "new_empty",
    "_empty",
    None,
    """Returns a tensor whose elements are not initialized, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        size: The sizes, as integers or as one sequence.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor(1.0, dtype=torch.float64).new_empty(2).dtype
        torch.float64

    See also:
        `torch.empty`.
    """,
)
_declare_new(
    "new_zeros",
    "_full",
    0,
    """Returns a tensor of zeros, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        size: The sizes, as integers or as one sequence.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor(1.0, dtype=torch.float64).new_zeros(2)
        tensor([0., 0.], dtype=torch.float64)

    See also:
        `torch.zeros`.
    """,
)
_declare_new(
    "new_ones",
    "_full",
    1,
    """Returns a tensor of ones, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        size: The sizes, as integers or as one sequence.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor(1.0, dtype=torch.float64).new_ones(2)
        tensor([1., 1.], dtype=torch.float64)

    See also:
        `torch.ones`.
    """,
)


@composite(f"new_full(Tensor input, size, fill_value, *, {_NEW})", where="Tensor")
def new_full(F, input, size, fill_value, dtype, device, requires_grad):
    """Returns a tensor filled with a value, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        size: The sizes.
        fill_value: The value, a number or a 0-d tensor.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor([1.0]).new_full((2,), 7)
        tensor([7., 7.])

    See also:
        `torch.full`.
    """
    dtype = _resolve_dtype("new_full", dtype, input.dtype)
    size = _check_size("new_full", tuple(size))
    return _create_by_kernel(
        "_full",
        size,
        _fill_value(fill_value, dtype, size),
        dtype,
        device=input._tl_kernels.device if device is None else device,
        requires_grad=requires_grad,
    )


@composite(f"new_empty_strided(Tensor input, size, stride, *, {_NEW})", where="Tensor")
def new_empty_strided(F, input, size, stride, dtype, device, requires_grad):
    """Returns a tensor of given strides whose elements are not initialized, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        size: The sizes.
        stride: The strides, in elements.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor([1.0]).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)

    See also:
        `torch.empty_strided`.
    """
    where = input._tl_kernels.device if device is None else device
    return _with_strides(
        _check_size("new_empty_strided", size),
        stride,
        _resolve_dtype("new_empty_strided", dtype, input.dtype),
        where,
        requires_grad,
    )


@composite(f"new_tensor(Tensor input, data, *, {_NEW})", where="Tensor")
def new_tensor(F, input, data, dtype, device, requires_grad):
    """Returns a copy of data, with the dtype and device of this tensor.

    Args:
        input: The tensor whose dtype and device the result has by default.
        data: A sequence, a number, an array or a tensor.
        dtype: The dtype of the result. Default: this tensor's.

    Example:
        >>> torch.tensor([1.0]).new_tensor([1, 2])
        tensor([1., 2.])

    See also:
        `torch.tensor`.
    """
    from .._tensor.creation import tensor

    return tensor(
        data,
        dtype=_resolve_dtype("new_tensor", dtype, input.dtype),
        device=input._tl_kernels.device if device is None else device,
        requires_grad=requires_grad,
    )
