"""Views of an array's memory as another dtype: real, complex, or any of the same bits."""

import numpy as xp

from torchlite._dispatch.shape_and_value_checks import view_dtype_geometry
from torchlite._dispatch.shapes import contiguous_strides
from torchlite._types.dtypes import FROM_NUMPY, from_np

from .pointwise import complex_as_real_view
from .storage import base_owner, data_pointer, storage_block


def view_as_real(input):
    if input.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return complex_as_real_view(input)


def view_as_complex(input):
    if input.dtype.kind != "f" or input.dtype.itemsize < 2:
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.size and input.strides[-1] != input.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % (2 * input.dtype.itemsize) for s, n in zip(input.strides[:-1], input.shape[:-1], strict=True) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if (data_pointer(input) - data_pointer(base_owner(input))) % (2 * input.dtype.itemsize):
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return input.view(from_np(input.dtype).to_complex().np)[..., 0]


def _view_dtype(input, dtype):
    old, new = input.dtype, dtype.np
    if old.itemsize == new.itemsize:
        return input.view(new)
    root = base_owner(input)
    begin = 0 if root is input else (data_pointer(input) - data_pointer(root)) // old.itemsize
    steps = [s // old.itemsize for s in input.strides] if input.size else contiguous_strides(input.shape)
    shape, steps, begin = view_dtype_geometry(input.shape, steps, begin, FROM_NUMPY[old], dtype)
    return xp.ndarray(shape, new, storage_block(root), begin * new.itemsize, tuple([s * new.itemsize for s in steps]))
