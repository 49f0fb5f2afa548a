"""torch.storage: the memory under tensors, as bytes and as typed elements."""

from __future__ import annotations

from ._tensor.storage import UntypedStorage, _StorageBase
from ._tensor.typed_storage import (
    TypedStorage,
    _dtype_to_storage_type_map,
    _get_always_warn_typed_storage_removal,
    _LegacyStorage,
    _reset_warn_typed_storage_removal,
    _set_always_warn_typed_storage_removal,
    _storage_type_to_dtype_map,
)
from ._tensor.typed_storage import _warn_deprecated as _warn_typed_storage_removal

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(data: bytes):
    """Load a storage from bytes; PyTorch's pickles of storages call it."""
    import io

    from .serialization import load

    return load(io.BytesIO(data), weights_only=False)


_INTERNAL = (
    _StorageBase, _LegacyStorage, _dtype_to_storage_type_map, _storage_type_to_dtype_map,
    _get_always_warn_typed_storage_removal, _set_always_warn_typed_storage_removal, _reset_warn_typed_storage_removal,
    _warn_typed_storage_removal,
)  # fmt: skip
