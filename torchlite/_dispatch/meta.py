"""The "meta" device: shapes and dtypes without data, from the records' own rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types.dtypes import bool_, dtype, from_np
from .record import ALWAYS_BOOL, POINTWISE, REGISTRY, VIEW, Op
from .shapes import broadcast, contiguous_strides


class MetaArray:
    """A shape, element strides and a dtype."""

    __slots__ = ("shape", "element_strides", "dtype", "offset")
    base = None  # reshape and contiguous give arrays of their own here

    def __init__(self, shape, d: dtype, strides=None, offset: int = 0):
        self.shape = tuple(int(n) for n in shape)
        self.dtype = d
        self.element_strides = contiguous_strides(self.shape) if strides is None else tuple(strides)
        self.offset = offset

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

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype})"


class _Rules:
    """Turns arguments (MetaArrays, Tensors, numbers) into a result's shape and dtype by an op's rule."""

    @staticmethod
    def run(op: Op, values) -> Any:
        by_name = {p.name: v for p, v in zip(op.params, values, strict=True)}
        if op.meta is not None:
            code = op.meta.__code__
            found = op.meta(*(by_name[n] for n in code.co_varnames[: code.co_argcount]))
            return [MetaArray(*f) for f in found] if isinstance(found, list) else MetaArray(*found)
        tensors = [v for p, v in zip(op.params, values, strict=True) if p.is_tensor and hasattr(v, "shape")]
        shape = broadcast(*(t.shape for t in tensors))
        if op.promote == ALWAYS_BOOL:
            return MetaArray(shape, bool_)
        part = op.promote_args or (op.params[0].name,)
        first = next((by_name[n] for n in part if hasattr(by_name[n], "dtype")), tensors[0])
        return MetaArray(shape, first.dtype)


def rule_error(op: Op, values) -> Exception | None:
    """The error that the op's shape rule raises for these arguments, if it does."""
    if op.meta is None and not op.tags & POINTWISE:
        return None
    try:
        _Rules.run(op, values)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return (
            error
            if type(error) in (RuntimeError, IndexError, TypeError, ValueError)
            and not isinstance(error, AttributeError)
            else None
        )
    except Exception:
        return None
    return None


class _ViewKernel:
    """A view op on a MetaArray: the NumPy backend's view of a same-shaped array whose memory is never touched."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, source: MetaArray, *args, **kwargs):
        from .._types.devices import device
        from .registry import table_of

        stand_in = _stand_in(source)
        result = getattr(table_of(device("cpu")), self.name)(stand_in, *args, **kwargs)
        d = source.dtype

        def back(array):
            found = d if array.dtype == stand_in.dtype else from_np(array.dtype)
            return MetaArray(
                array.shape,
                found,
                [s // max(array.itemsize, 1) for s in array.strides],
                source.offset + (array.ctypes.data - stand_in.ctypes.data) // max(array.itemsize, 1),
            )

        return tuple(back(r) for r in result) if isinstance(result, (tuple, list)) else back(result)


def _stand_in(source: MetaArray) -> np.ndarray:
    """An array with the shape and strides of `source` over a single element: good for asking where a view lies, never
    read.
    """
    d = source.dtype.np
    return np.lib.stride_tricks.as_strided(
        np.empty(1, d), source.shape, [s * d.itemsize for s in source.element_strides]
    )


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
            elif op.meta is not None or (op.tags & POINTWISE and op.composite is None):
                table[op.name] = self._kernel(op)
        table.update(
            reshape=_reshape,
            clone=lambda x, *, memory_format=None: MetaArray(x.shape, x.dtype),
            contiguous=lambda x, memory_format=None: MetaArray(x.shape, x.dtype),
        )
        return {name: kernel for name, kernel in table.items() if name in REGISTRY}

    @staticmethod
    def _kernel(op: Op):
        def kernel(*args, **kwargs):
            values = list(args)
            for p in op.params[len(args) :]:
                values.append(kwargs.get(p.name, p.default))
            return _Rules.run(op, values)

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
        return (raw.offset - base.offset) * raw.dtype.itemsize

    def copy_into(self, target, source) -> None:
        broadcast(target.shape, source.shape)

    def owns(self, raw) -> bool:
        return True

    def random_engine(self, index):
        return None


def _reshape(x: MetaArray, shape):
    from .shapes import infer_size

    return MetaArray(infer_size(shape, x.size), x.dtype)


backend = MetaBackend()
