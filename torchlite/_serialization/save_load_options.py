"""Defaults of `save` and `load`: settings of the process, and of a thread within a block."""

from __future__ import annotations

import enum
import mmap
import sys
import threading
from typing import Any


class LoadEndianness(enum.Enum):
    """The byte order of a checkpoint without a record of it.

    Example:
        >>> list(torch.serialization.LoadEndianness)
        [<LoadEndianness.NATIVE: 1>, <LoadEndianness.LITTLE: 2>, <LoadEndianness.BIG: 3>]
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SaveOptions:
    """Defaults of `save`. compute_crc32: whether records get checksums. storage_alignment: the alignment of storages in
    the file, in bytes. use_pinned_memory_for_d2h: no effect, as the backend reads devices.
    """

    def __init__(self) -> None:
        self.compute_crc32 = True
        self.storage_alignment = 64
        self.use_pinned_memory_for_d2h = False


class LoadOptions:
    """Defaults of `load`. mmap: whether files are mapped. endianness: the byte order of files without a byteorder
    record, None for little. mmap_flags: MAP_PRIVATE or MAP_SHARED. calculate_storage_offsets: no effect, as the
    archive's directory locates records.
    """

    def __init__(self) -> None:
        self.mmap = False
        self.endianness: LoadEndianness | None = None
        self.mmap_flags: int | None = None if sys.platform == "win32" else mmap.MAP_PRIVATE
        self.calculate_storage_offsets = False


save, load = SaveOptions(), LoadOptions()


class _Local(threading.local):
    """Thread-local state of `skip_data`."""

    def __init__(self) -> None:
        self.map_location: Any = None
        self.skip_data = False
        self.materialize_fake_tensors = False


thread_options = _Local()
