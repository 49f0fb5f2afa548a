"""The strided device array."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlite._dispatch.shape_and_value_checks import storage_nbytes_for
from torchlite._types.dtypes import BY_NAME
from torchlite_backends.kernel_sources.dtype_kinds import KINDS

if TYPE_CHECKING:
    from .device import Device

MAX_ELEMENTS = 1 << 31
_new = object.__new__


class Array:
    """Elements of one kind in a device's memory: a buffer, an offset and a stride per dimension.

    Offset and strides count elements; strides may be 0 or negative. `base` is the array that owns the memory, None for
    the owner. `contiguous` is True for row-major order without gaps.
    """

    __slots__ = (
        "device", "buffer", "offset", "shape", "steps", "size", "kind", "dtype", "base", "contiguous", "__weakref__",
    )  # fmt: skip

    device: Device
    buffer: Any
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    size: int
    kind: str
    dtype: np.dtype
    base: Array | None
    contiguous: bool

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        size = self.dtype.itemsize
        return tuple([s * size for s in self.steps])

    def data_ptr(self) -> int:
        """Return the address of the first element.

        If the host has no addresses of device memory, it is a number of bytes that differs between buffers.
        """
        return self.device.address(self.buffer) + self.offset * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<{self.kind} array {self.shape} steps {self.steps} offset {self.offset} on {self.device!r}>"


@functools.cache
def numpy_dtype_of_kind(kind: str) -> np.dtype:
    """Return the NumPy dtype of a kind."""
    return BY_NAME[KINDS[kind].numpy].np


_BY_NAME = {how.numpy: kind for kind, how in KINDS.items()}


@functools.cache
def kind_of(dtype: np.dtype) -> str:
    """Return the kind of a NumPy dtype. TypeError for one that devices lack."""
    found = _BY_NAME.get(dtype.name)
    if found is None:
        raise TypeError(
            f"OpenCL and CUDA devices have no {(dtype.names or (dtype.name,))[0]}; use one of {', '.join(_BY_NAME)}"
        )
    return found


@functools.lru_cache(16384)
def row_major_layout(shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the number of elements of a shape and its row-major strides. TypeError for lengths that are not integers.

    A float length would otherwise be cached and equal an integer shape's key.
    """
    shape = tuple(map(operator.index, shape))
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n if n > 0 else 1
    return math.prod(shape), tuple(reversed(steps))


@functools.lru_cache(16384)
def _compute_new_array_layout(shape: tuple[int, ...], kind: str) -> tuple[int, tuple[int, ...], np.dtype, int]:
    """Return size, strides, dtype and bytes of a new array."""
    size, steps = row_major_layout(shape)
    dtype = numpy_dtype_of_kind(kind)
    return size, steps, dtype, size * dtype.itemsize


def empty(device: Device, shape: tuple[int, ...], kind: str) -> Array:
    """Return an uninitialised array."""
    out = _new(Array)
    out.size, out.steps, out.dtype, nbytes = _compute_new_array_layout(shape, kind)
    if out.size >= MAX_ELEMENTS:
        raise RuntimeError(
            f"a tensor on {device.type} holds fewer than 2**31 elements, and shape {list(shape)} has {out.size}: "
            "split it"
        )
    out.device, out.shape, out.kind, out.offset, out.base, out.contiguous = device, shape, kind, 0, None, True
    out.buffer = device.allocate(nbytes, out)
    return out


@functools.lru_cache(16384)
def is_row_major(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """True if strides are row-major; dimensions of length 1 do not count."""
    expected = 1
    for n, step in zip(reversed(shape), reversed(steps), strict=True):
        if n != 1:
            if step != expected:
                return n == 0 or 0 in shape
            expected *= n
    return True


@functools.lru_cache(16384)
def _compute_size_and_order(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, bool]:
    """Return the number of elements, and whether they are row-major. TypeError as in `row_major_layout`."""
    return math.prod(map(operator.index, shape)), is_row_major(shape, steps)


def make_view(x: Array, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> Array:
    """View the memory of `x`; `offset` counts from the start of the buffer."""
    out = _new(Array)
    out.device, out.buffer, out.kind, out.dtype = x.device, x.buffer, x.kind, x.dtype
    out.shape, out.steps, out.offset = shape, steps, offset
    out.size, out.contiguous = _compute_size_and_order(shape, steps)
    out.base = x if x.base is None else x.base
    return out


def empty_like_layout(x: Array) -> Array:
    """Return an array with the layout of `x`, without memory."""
    made = _new(Array)
    made.device, made.offset, made.shape, made.steps, made.size = x.device, x.offset, x.shape, x.steps, x.size
    made.kind, made.dtype, made.base, made.contiguous = x.kind, x.dtype, None, x.contiguous
    return made


def storage_nbytes(x: Array) -> int:
    """Return the bytes of the storage of `x`: from its owner's first to its last element."""
    owner = x if x.base is None else x.base
    if owner.contiguous:
        return owner.size * owner.dtype.itemsize
    return storage_nbytes_for(owner.shape, owner.steps, owner.dtype.itemsize)


def storage_bytes(x: Array) -> Array:
    """View the storage of `x` as a flat array of bytes."""
    owner = x if x.base is None else x.base
    nbytes = storage_nbytes(owner)
    out = make_view(owner, (nbytes,), (1,), owner.offset * owner.dtype.itemsize)
    out.kind, out.dtype = "u8", numpy_dtype_of_kind("u8")
    return out
