"""TorchScript's integer codes of dtypes, layouts, memory formats and quantization schemes."""

from __future__ import annotations

from typing import Any

from .._types import dtypes, layouts

# By PyTorch's code; None for unsupported dtypes.
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 "
    "quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz "
    "uint16 uint32 uint64"
).split()
_LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_SCHEMES = (
    "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)  # fmt: skip
_BY_NAME = {**dtypes.BY_NAME, **dtypes.NAME_ONLY}
_BY_DTYPE = {_BY_NAME[name]: code for code, name in enumerate(_DTYPES) if name in _BY_NAME}


def code_to_dtype(code: Any) -> Any:
    """Return the dtype of a code; other values unchanged. Raise RuntimeError for a code without dtype."""
    if code.__class__ is not int:
        return code
    name = _DTYPES[code] if 0 <= code < len(_DTYPES) else None
    if name is None or name not in _BY_NAME:
        raise RuntimeError(f"torchlite has no dtype of the number {code}" + (f" ({name})" if name else ""))
    return _BY_NAME[name]


def code_to_layout(code: Any) -> Any:
    """Return the layout of a code."""
    if code.__class__ is not int:
        return code
    found = getattr(layouts, _LAYOUTS[code], None) if 0 <= code < len(_LAYOUTS) else None
    if found is None:
        raise RuntimeError(f"torchlite has no layout of the number {code}")
    return found


def code_to_memory_format(code: Any) -> Any:
    """Return the memory format of a code."""
    if code.__class__ is not int:
        return code
    if not 0 <= code < len(_FORMATS):
        raise RuntimeError(f"there is no memory format of the number {code}")
    return getattr(layouts, _FORMATS[code])


def to_code(value: Any) -> int:
    """Return the code of a dtype, layout, memory format or quantization scheme."""
    if value in _BY_DTYPE:
        return _BY_DTYPE[value]
    text = str(value).removeprefix("torch.")
    for names in (_LAYOUTS, _FORMATS, _SCHEMES):
        if text in names:
            return names.index(text)
    raise RuntimeError(f"TorchScript has no number for {value}")
