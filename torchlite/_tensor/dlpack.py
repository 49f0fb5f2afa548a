"""DLPack capsules: their devices and dtypes. NumPy imports them; this module handles the dtypes that NumPy lacks."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .._types import dtypes


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


# Where the tensor begins in the structure that a capsule of each name holds.
_TENSOR_OFFSETS = {b"dltensor": 0, b"dltensor_versioned": 32}
_UNSIGNED = 1
# DLPack's codes of the dtypes that NumPy has no code for. They travel through NumPy as unsigned integers of their size.
_CODES = {
    (4, 16): "bfloat16", (5, 32): "complex32", (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
}  # fmt: skip

_api = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def _read_capsule(capsule: Any) -> _DLTensor:
    """The DLTensor in a capsule. RuntimeError for a consumed capsule, and for other values."""
    for name, begin in _TENSOR_OFFSETS.items():
        if type(capsule).__name__ == "PyCapsule" and _is_valid(capsule, name):
            return _DLTensor.from_address(_pointer(capsule, name) + begin)
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
        "have already constructed a tensor from it once."
    )


class Capsule:
    """A capsule as an object with `__dlpack__`. `dtype` is the element dtype if NumPy has no name for it."""

    def __init__(self, capsule: Any):
        held = _read_capsule(capsule)
        self._capsule = capsule
        self._device = held.device_type, held.device_id
        self.dtype = dtypes.BY_NAME.get(_CODES.get((held.code, held.bits), ""))
        if self.dtype is not None:
            held.code = _UNSIGNED

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def export_capsule(raw: np.ndarray, d: dtypes.dtype, options: dict[str, Any]) -> Any:
    """A capsule on a NumPy array of any dtype."""
    code = next((code for (code, _), name in _CODES.items() if name == d.name), None)
    if code is None:
        return raw.__dlpack__(**options)
    capsule = raw.view(f"u{d.itemsize}").__dlpack__(**options)
    _read_capsule(capsule).code = code
    return capsule
