"""The "meta" device: shapes and dtypes without data, from the records' own rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types.dtypes import bool_, dtype, from_np, uint8
from .memory_layout import (
    channels_last_strides,
    elementwise_output_strides,
    infer_dense_strides,
    is_channels_last,
    is_contiguous,
)
from .op_record import ALWAYS_BOOL, CAST, POINTWISE, REGISTRY, VIEW, Op
from .shape_and_value_checks import check_in_bounds_for_storage, check_new_size, storage_nbytes_for
from .shapes import broadcast_shapes, contiguous_strides, infer_size


class MetaArray:
    """A shape, element strides and a dtype, and an offset (in elements) in the storage of its owner, `base`; None if it
    is the owner.
    """

    __slots__ = ("shape", "element_strides", "dtype", "offset", "base", "__weakref__")

    def __init__(self, shape, d: dtype, strides=None, offset: int = 0, base: MetaArray | None = None):
        self.shape = tuple(int(n) for n in shape)
        self.dtype, self.offset, self.base = d, offset, base
        if strides is None:
            check_new_size(self.shape, d.itemsize)
            strides = contiguous_strides(self.shape)
        self.element_strides = tuple(strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for length in self.shape:
            n *= length
        return n

    @property
    def strides(self):
        return tuple(s * self.dtype.itemsize for s in self.element_strides)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def held(self) -> int:
        """The bytes of the storage."""
        owner = self.base or self
        return storage_nbytes_for(owner.shape, owner.element_strides, owner.dtype.itemsize, owner.offset)

    def seen(self, shape, strides, start: int, d: dtype | None = None) -> MetaArray:
        """A view: `start` counts bytes from the first one of the storage."""
        d = d or self.dtype
        return MetaArray(shape, d, strides, start // d.itemsize, self.base or self)

    @property
    def start(self) -> int:
        """The first byte in the storage."""
        return self.offset * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype})"


class _ShapeRule:
    """Turns arguments (MetaArrays, Tensors, numbers) into a result's shape and dtype by an op's rule."""

    @staticmethod
    def run(op: Op, values) -> Any:
        by_name = {p.name: v for p, v in zip(op.params, values, strict=True)}
        if op.shape_fn is not None:
            code = op.shape_fn.__code__
            found = op.shape_fn(*(by_name[n] for n in code.co_varnames[: code.co_argcount]))
            return [MetaArray(*f) for f in found] if isinstance(found, list) else MetaArray(*found)
        tensors = [v for p, v in zip(op.params, values, strict=True) if p.is_tensor and hasattr(v, "shape")]
        shape = broadcast_shapes(*(t.shape for t in tensors))
        if op.promote == ALWAYS_BOOL:
            return MetaArray(shape, bool_)
        part = op.promote_args or (op.params[0].name,)
        first = next((by_name[n] for n in part if hasattr(by_name[n], "dtype")), tensors[0])
        return MetaArray(shape, first.dtype)


def shape_fn_error(op: Op, values) -> Exception | None:
    """The error that the op's shape rule raises for these arguments, if it does."""
    if op.shape_fn is None and not op.tags & POINTWISE:
        return None
    try:
        _ShapeRule.run(op, values)
    except Exception as error:  # rules fail in any way for arguments that the parser refuses
        if type(error) not in (RuntimeError, IndexError, TypeError, ValueError):
            return None
        # Without the frames that it went through: one of them will hold it, which would be a cycle with all tensors.
        error.__context__ = None
        return error.with_traceback(None)
    return None


class _ViewKernel:
    """A view op on a MetaArray: the NumPy backend's view of a same-shaped array whose memory is never touched."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, source: MetaArray, *args, **kwargs):
        from .._types.devices import device
        from .backend_registry import table_of

        stand_in = _dummy_array(source)
        result = getattr(table_of(device("cpu")), self.name)(stand_in, *args, **kwargs)

        def to_meta_array(array):
            d = source.dtype if array.dtype == stand_in.dtype else from_np(array.dtype)
            moved = array.__array_interface__["data"][0] - stand_in.__array_interface__["data"][0]
            return source.seen(array.shape, [s // d.itemsize for s in array.strides], source.start + moved, d)

        return tuple(to_meta_array(r) for r in result) if isinstance(result, (tuple, list)) else to_meta_array(result)


def _dummy_array(source: MetaArray) -> np.ndarray:
    """An array with the shape and strides of `source` over a single element. It is used to compute views and never
    read.
    """
    d = source.dtype.np
    return np.lib.stride_tricks.as_strided(
        np.empty(1, d), source.shape, [s * d.itemsize for s in source.element_strides]
    )


def _as_strided(x: MetaArray, size, stride, offset=None, input_stride=None) -> MetaArray:
    at = x.offset + (offset or 0)
    check_in_bounds_for_storage(size, stride, at, x.dtype.itemsize, x.held)
    return x.seen(size, stride, at * x.dtype.itemsize)


def _index(x: MetaArray, index) -> MetaArray:
    """The elements at an index with arrays; only masks need values, and those have them where they are on the CPU."""
    parts = []
    for part in index if isinstance(index, tuple) else (index,):
        if part.__class__ is MetaArray and part.dtype is bool_:
            raise NotImplementedError("a mask on the meta device has no data, on which the size of a result depends")
        is_mask = getattr(part, "dtype", None) == np.bool_
        shaped = hasattr(part, "shape") and not is_mask
        parts.append(np.broadcast_to(np.zeros((), np.intp), part.shape) if shaped else part)
    return MetaArray(np.broadcast_to(np.empty((), np.bool_), x.shape)[tuple(parts)].shape, x.dtype)


class MetaBackend:
    """Backend protocol for "meta"."""

    name = "meta"
    array = MetaArray

    def why_not(self) -> str:
        return ""

    def device_count(self) -> int:
        return 1

    def kernels(self, index: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for op in REGISTRY.values():
            if op.tags & VIEW:
                table[op.name] = _ViewKernel(op.name)
            elif op.shape_fn is not None or (op.tags & POINTWISE and op.composite is None):
                table[op.name] = self._make_meta_kernel(op)
        table.update(reshape=_reshape, _as_strided=_as_strided, clone=_clone, contiguous=_contiguous, _index=_index)
        return {name: kernel for name, kernel in table.items() if name in REGISTRY}

    @staticmethod
    def _make_meta_kernel(op: Op):
        def kernel(*args, **kwargs):
            values = list(args)
            for p in op.params[len(args) :]:
                values.append(kwargs.get(p.name, p.default))
            found = _ShapeRule.run(op, values)
            if op.tags & (POINTWISE | CAST) and op.layout is None and found.__class__ is MetaArray:
                arrays = tuple([(v.shape, v.element_strides) for v in values if v.__class__ is MetaArray])
                if arrays:
                    found.element_strides = elementwise_output_strides(found.shape, arrays)
            return found

        return kernel

    def as_array(self, value):
        if isinstance(value, MetaArray):
            return value
        raise NotImplementedError(f"a tensor on the meta device has no data; an op returned {type(value).__name__}")

    def from_numpy(self, array, index):
        return MetaArray(array.shape, from_np(array.dtype))

    def to_numpy(self, raw):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def dtype_of(self, raw) -> dtype:
        return raw.dtype

    def offset_between(self, raw, base) -> int:
        return raw.start - base.start

    def memory(self, raw: MetaArray) -> MetaArray:
        return raw.seen((raw.held,), (1,), 0, uint8)

    def copy_into(self, target, source) -> None:
        broadcast_shapes(target.shape, source.shape)

    def is_sole_owner(self, raw) -> bool:
        return True

    def random_engine(self, index):
        return None


def _contiguous(x: MetaArray, memory_format=None):
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        found = is_channels_last(x.shape, x.element_strides)
        return x if found else MetaArray(x.shape, x.dtype, channels_last_strides(x.shape))
    return x if is_contiguous(x.shape, x.element_strides) else MetaArray(x.shape, x.dtype)


def _clone(x: MetaArray, *, memory_format=None):
    name = getattr(memory_format, "name", "preserve_format")
    if name == "preserve_format":
        return MetaArray(x.shape, x.dtype, infer_dense_strides(x.shape, x.element_strides))
    return MetaArray(x.shape, x.dtype, channels_last_strides(x.shape) if name.startswith("channels_last") else None)


def _reshape(x: MetaArray, shape):
    from .._types.devices import device
    from .backend_registry import table_of

    shape = infer_size(shape, x.size)
    try:
        return table_of(device("meta"))._view(x, shape)
    except RuntimeError:
        return MetaArray(shape, x.dtype)


backend = MetaBackend()
