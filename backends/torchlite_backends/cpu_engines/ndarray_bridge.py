"""Calls of an engine's kernels with ndarrays, without copies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._dispatch import REGISTRY
from torchlite_backends.array.storage import base_owner, data_pointer
from torchlite_backends.device_runtime.backend import KernelsByNeed
from torchlite_backends.device_runtime.core.array import MAX_ELEMENTS, Array, is_row_major, kind_of
from torchlite_backends.device_runtime.core.device import BoundedCache, NotBuiltError
from torchlite_backends.device_runtime.core.device_asserts import raise_pending

from .engine_selection import CpuEngine

_NEVER_SIZE = 1 << 62
# Pointwise ops, whose launch depends on shapes, dtypes and numbers.
REPEATED = frozenset(
    """abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh ceil clamp_max clamp_min _clamp_scalars
    copysign cos cosh digamma div _elu elu _elu_backward eq erf erfc erfinv exp exp2 expm1 floor fmax fmin frac ge
    gelu _gelu_backward gt hardshrink hardsigmoid hardswish heaviside _huber hypot isclose isfinite isinf isnan le
    leaky_relu _leaky_relu_backward _lerp_scalar _lerp_tensor lgamma log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor logit lt maximum minimum mish _mish_backward mul nan_to_num ne
    neg pow _prelu reciprocal relu _relu_backward round rsqrt sgn sigmoid sign silu _silu_backward sin sinc sinh
    softplus softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_entr special_erfcx special_i0e special_i1e special_log_ndtr special_ndtr special_ndtri
    special_spherical_bessel_j0 sqrt square sub tan tanh threshold trunc _trunc_divide _where where
    """.split()
)


class UnsupportedArray(Exception):
    """Raised for an ndarray that a device array cannot represent."""


def make_engine_kernel(
    engine: CpuEngine, name: str, plain: Callable, least: dict[np.dtype, int], by: int = 0
) -> Callable:
    """Return a kernel that dispatches to the engine for supported dtypes and sizes, else to NumPy's, `plain`.

    `plain` also serves if the engine's kernel raises, so that errors are NumPy's, and if there is no device. The first
    argument has the dtype, argument number `by` the number of elements.
    """

    missing = BoundedCache(4096)  # calls whose program is not built
    repeated = BoundedCache(4096)  # launches by `_key_of_flat_call`
    repeats = name.removesuffix("_") in REPEATED and engine.run_and_keep is not None
    operands = 0 if name.endswith("_") else len(REGISTRY[name].params)  # arguments that are only read

    def kernel(*args: Any, **options: Any) -> Any:
        first = args[0]
        if first.__class__ is not np.ndarray:
            if first.__class__ not in (tuple, list) or not first or first[0].__class__ is not np.ndarray:
                return plain(*args, **options)
            first = max(first, key=_size_of)
        if (args[by] if 0 < by < len(args) else first).size < least.get(first.dtype, _NEVER_SIZE):
            return plain(*args, **options)
        device = engine.device()
        if device is None:
            return plain(*args, **options)
        key = _key_of_flat_call(device, args, len(args) <= operands) if repeats and not options else None
        try:
            if key is not None and (launch := repeated.get(key)) is not None:
                return launch(args)
            if not missing or _call_signature(args, options) not in missing:
                if key is None:
                    return run_on_device(device, name, args, options)
                result, launch = engine.run_and_keep(
                    device, lambda: run_on_device(device, name, args, options, len(args) <= operands), args
                )
                if launch is not None:
                    repeated[key] = launch
                return result
        except NotBuiltError:
            missing[_call_signature(args, options)] = True
        except Exception:  # a driver's error, or a wrong argument, for which NumPy's kernel raises
            return plain(*args, **options)
        return plain(*args, **options)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.plain = plain  # type: ignore[attr-defined]
    kernel.takes_out = getattr(plain, "takes_out", False)  # type: ignore[attr-defined]
    return kernel


def _key_of_flat_call(device: Any, args: tuple, read: bool) -> tuple | None:
    """Return what a pointwise launch depends on besides addresses; None unless the arguments are numbers and row-major
    arrays, which own their memory if one of them is written (not `read`).
    """
    key: list = [device]
    first = None
    for x in args:
        kind = x.__class__
        if kind is np.ndarray:
            flags = x.flags
            if not flags.c_contiguous or not x.size or x.base is not None and not (read and flags.aligned):
                return None
            if first is None:
                first = x
            elif x is first:
                key.append(len(key))
            key.append(x.shape)
            key.append(x.dtype)
        elif kind is float or kind is int:
            key.append(kind)
            key.append(x if x else repr(x))  # -0.0 == 0.0
        elif x is None or kind is bool:
            key.append(repr(x))
        else:
            return None
    return tuple(key)


def _size_of(x: Any) -> int:
    return getattr(x, "size", 0)


def _call_signature(args: Any, options: dict[str, Any]) -> tuple:
    """Return the key on which a call's programs depend."""
    found: list = [*options]
    for x in (*args, *options.values()):
        if x.__class__ is np.ndarray:
            found += (x.dtype, x.shape, x.strides)
        elif isinstance(x, (tuple, list)):
            found.append(_call_signature(x, {}))
        else:
            found.append(repr(x))
    return tuple(found)


@functools.lru_cache(16)
def kernels(device: Any) -> dict[str, Callable]:
    """Return the kernels of `torchlite_backends.device_runtime` by op name."""
    return KernelsByNeed(device)


def run_on_device(device: Any, name: str, args: tuple, options: dict[str, Any], apart: bool = False) -> Any:
    """Run a device's kernel on ndarrays; return ndarrays. With `apart`, arrays are passed as if none shared memory.

    Raises UnsupportedArray if they cannot be passed; an error of the kernel may leave an in-place result partly
    written.
    """
    kernel = kernels(device)[name]
    with device.using:
        call = KernelCall(device, apart)
        try:
            out = kernel(*call.wrap_all(args), **{name: call.wrap_argument(x) for name, x in options.items()})
        finally:
            device.done()
        raise_pending(device)
    return call.unwrap_result(out)


class KernelCall:
    """Arrays of one call. Those that share memory share a buffer, so that kernels see overlaps; with `apart` they have
    one each.
    """

    __slots__ = ("device", "_apart", "_buffers", "_given")

    def __init__(self, device: Any, apart: bool = False):
        self.device, self._apart = device, apart
        self._buffers: dict[int, Any] = {}  # by the array that owns the memory
        self._given: list[tuple[Array, np.ndarray]] = []

    def wrap_all(self, values: Any) -> list:
        return [self.wrap_argument(x) for x in values]

    def wrap_argument(self, value: Any) -> Any:
        """Return an argument for a device's kernel: ndarrays as Arrays, also in lists and tuples; all else
        unchanged.
        """
        kind = value.__class__
        if kind is np.ndarray:
            return self.wrap(value)
        if kind is tuple or kind is list:
            return kind(self.wrap_all(value))
        return self.wrap(np.asarray(value)) if isinstance(value, np.generic) else value

    def wrap(self, x: np.ndarray) -> Array:
        """Return an Array on the memory of an ndarray."""
        out, dtype, itemsize = object.__new__(Array), x.dtype, x.itemsize
        try:
            out.kind = kind_of(dtype)
        except TypeError as error:
            raise UnsupportedArray(str(error)) from None
        out.device, out.dtype, out.shape, out.size, out.base, out.offset = self.device, dtype, x.shape, x.size, None, 0
        if not dtype.isnative or out.size >= MAX_ELEMENTS:
            raise UnsupportedArray("another order of bytes, or too many elements")
        if any(s % itemsize and n > 1 for s, n in zip(x.strides, x.shape, strict=True)):
            raise UnsupportedArray("steps that are no whole elements")
        out.steps = tuple([s // itemsize for s in x.strides])
        out.contiguous = is_row_major(out.shape, out.steps)
        root = x if self._apart or x.base is None else base_owner(x)
        out.buffer = self._buffers.get(id(root))
        if out.buffer is None:
            out.buffer = self._buffers[id(root)] = self.device.buffer_of(root)
        if root is not x and out.size:
            out.offset, rest = divmod(data_pointer(x) - data_pointer(root), itemsize)
            if rest or abs(out.offset) >= MAX_ELEMENTS:
                raise UnsupportedArray("an offset that is no whole element, or too large")
        self._given.append((out, x))
        return out

    def unwrap_result(self, out: Any) -> Any:
        """Return a kernel's result with ndarrays in place of Arrays."""
        kind = out.__class__
        if kind is Array:
            for array, given in self._given:
                if array is out:
                    return given
            return self._unwrap(out)
        return kind(map(self.unwrap_result, out)) if kind is tuple or kind is list else out

    def _unwrap(self, out: Array) -> np.ndarray:
        held = out.buffer.array
        if out.contiguous and out.size == held.size and out.dtype == held.dtype and not self._is_given(out.buffer):
            if out.shape != held.shape:
                held.resize(out.shape, refcheck=False)  # same number of elements: it still owns its memory
            return held
        return self.device.unwrap(out)

    def _is_given(self, buffer: Any) -> bool:
        return any(buffer is given for given in self._buffers.values())
