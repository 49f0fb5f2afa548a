"""TorchScript's integer codes of dtypes, layouts and memory formats."""

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
_BY_DTYPE = {dtypes.BY_NAME[name]: code for code, name in enumerate(_DTYPES) if name in dtypes.BY_NAME}


def code_to_dtype(code: Any) -> Any:
    """Return the dtype of a code; other values unchanged. Raise RuntimeError for a code without dtype."""
    if code.__class__ is not int:
        return code
    name = _DTYPES[code] if 0 <= code < len(_DTYPES) else None
    if name is None or name not in dtypes.BY_NAME:
        raise RuntimeError(f"torchlite has no dtype of the number {code}" + (f" ({name})" if name else ""))
    return dtypes.BY_NAME[name]


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
    """Return the code of a dtype, layout or memory format."""
    if value in _BY_DTYPE:
        return _BY_DTYPE[value]
    text = str(value).removeprefix("torch.")
    for names in (_LAYOUTS, _FORMATS):
        if text in names:
            return names.index(text)
    raise RuntimeError(f"TorchScript has no number for {value}")
