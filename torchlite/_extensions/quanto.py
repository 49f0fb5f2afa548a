"""The C++ extension of optimum-quanto: weights of two and four bits out of bytes."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .op_spec import require


def unpack(t: Any, bits: int) -> Any:
    """The numbers of 2 or 4 bits in the bytes of a uint8 tensor, lowest bits first, one part of rows after another.

    RuntimeError for another dtype or number of bits.
    """
    require(t.dtype is torch.uint8, lambda: f"Unsupported data type: {t.dtype.scalar_name}")
    require(bits in (2, 4), lambda: "Can only unpack 2-bit or 4-bit tensors.")
    mask = (1 << bits) - 1
    return torch.cat([(t >> shift) & mask for shift in range(0, 8, bits)])
