"""Serialization tables of `.pt2` files: dtype, layout and memory format codes, and FormatError."""

from __future__ import annotations

from typing import Any

import torchlite as torch

SCHEMA_VERSION = 8, 20
DTYPES: dict[int, Any] = {
    code: found
    for code, name in {
        1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
        9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
        29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
        34: "uint32", 35: "uint64",
    }.items()
    if (found := getattr(torch, name, None)) is not None
}  # fmt: skip
DTYPE_CODES = {found: code for code, found in DTYPES.items()}
LAYOUTS: dict[int, Any] = {
    1: torch.sparse_coo, 2: torch.sparse_csr, 3: torch.sparse_csc, 4: torch.sparse_bsr, 5: torch.sparse_bsc,
    7: torch.strided,
}  # fmt: skip
LAYOUT_CODES = {found: code for code, found in LAYOUTS.items()}
MEMORY_FORMATS: dict[int, Any] = {
    1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d, 4: torch.preserve_format,
}  # fmt: skip
MEMORY_FORMAT_CODES = {found: code for code, found in MEMORY_FORMATS.items()}


class FormatError(RuntimeError):
    """The file is no valid exported program."""


def format_error(part: str, why: str) -> FormatError:
    """Return a FormatError that names the invalid part."""
    return FormatError(f"torch.export.load: {part}: {why}")
