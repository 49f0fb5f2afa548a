"""Lazy clones with copy-on-write memory."""

from __future__ import annotations

import numpy as np

from torchlite._dispatch.copy_on_write import new_cow_reference
from torchlite_backends.array.storage import base_owner, storage_block


def _cow_clone(input):
    """Return a lazy clone that shares memory until either array is written."""
    whole = base_owner(input)
    flat = np.ndarray((storage_block(whole).nbytes,), np.uint8, storage_block(whole))
    offset = input.__array_interface__["data"][0] - flat.__array_interface__["data"][0] if input.size else 0
    return np.ndarray(input.shape, input.dtype, new_cow_reference(whole, flat), offset, input.strides)
