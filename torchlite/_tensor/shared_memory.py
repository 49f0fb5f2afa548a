"""Memory shared with other processes or files: mappings, and arrays over them.

A mapping has no file descriptor (Python's `mmap` has one each), so a process can share more storages than it may open
files. A mapping without a name keeps the descriptor with which other processes can map it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

own_mappings: set[int] = set()  # the descriptors of this process's mappings


class Mapping:
    """A mapping of a file or of anonymous memory. NumPy wraps it as an array of bytes and holds a reference to it."""

    descriptor = -1  # of anonymous memory, for other processes to map
    unmap: Callable[[int, int], Any] | None = None  # it takes `span`: the address and the length
    span = (0, 0)

    def __init__(self, descriptor: int, nbytes: int, shared: bool = True, filename: str | None = None) -> None:
        self.shared, self.filename, self.own = shared, filename, False
        self.identity: tuple[int, int] | None = None  # of the memory, the same in all processes
        if descriptor >= 0 and shared:
            known = os.fstat(descriptor)
            self.identity = known.st_dev, known.st_ino
        address = _map_memory(self, descriptor, max(nbytes, 1), shared)
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def keep(self, descriptor: int) -> None:
        """Own a descriptor, by which other processes can map the memory."""
        self.descriptor = descriptor
        own_mappings.add(descriptor)

    def __del__(self, close: Callable[[int], None] = os.close, own: set[int] = own_mappings) -> None:
        # At exit the system frees both.
        if self.unmap is not None:
            self.unmap(*self.span)
        if self.descriptor >= 0:
            own.discard(self.descriptor)
            close(self.descriptor)


@functools.cache
def _load_libc() -> Any:
    """`mmap` and `munmap` of the C library; None on systems without."""
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        make, end = library.mmap, library.munmap
    except (ImportError, OSError, TypeError, AttributeError):
        return None
    number, size = ctypes.c_int, ctypes.c_size_t
    make.argtypes, make.restype = [ctypes.c_void_p, size, number, number, number, ctypes.c_long], ctypes.c_void_p
    end.argtypes, end.restype = [ctypes.c_void_p, size], number
    return make, end, ctypes.get_errno


def _map_memory(owner: Mapping, descriptor: int, nbytes: int, shared: bool) -> int:
    """The address of new mapped memory, which is unmapped with its owner."""
    calls = _load_libc()
    if calls is None:
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        held = mmap.mmap(descriptor, nbytes, access=access)
        owner.held = held  # type: ignore[attr-defined]
        return np.frombuffer(held, np.uint8).ctypes.data
    make, end, errno = calls
    flags = (mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE) | (mmap.MAP_ANONYMOUS if descriptor < 0 else 0)
    address = make(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    if address is None or address == 2 ** (8 * np.dtype(np.uintp).itemsize) - 1:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{owner.filename}>: {os.strerror(errno())}")
    owner.unmap, owner.span = end, (address, nbytes)
    return address


def mapping_of(raw: Any) -> Any:
    """The mapping (a `Mapping`) under an array; None for other memory."""
    while raw is not None and not isinstance(raw, Mapping):
        raw = raw.obj if isinstance(raw, memoryview) else getattr(raw, "keeper", getattr(raw, "base", None))
    return raw


class SharingStrategy:
    """How new memory is shared: by a file descriptor, or by a name in shared memory."""

    strategy = "file_descriptor"

    @classmethod
    def by_name(cls) -> bool:
        """True if memory gets a name: also if a quarter of the process's allowed descriptors are in use."""
        if cls.strategy == "file_system" or not hasattr(os, "memfd_create"):
            return os.name == "posix"
        import resource

        return len(own_mappings) >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4


def map_shared(nbytes: int, contents: np.ndarray | None = None) -> np.ndarray:
    """Memory that other processes can see: zeros, or a copy of this many bytes."""
    if nbytes and SharingStrategy.by_name():
        memory = map_file(new_name(), True, nbytes, own=True)
    elif hasattr(os, "memfd_create"):
        return map_descriptor(_create_memory(nbytes, contents), nbytes)
    else:
        memory = map_descriptor(-1, nbytes)
    if contents is not None:
        np.copyto(memory, contents)
    return memory


def _create_memory(nbytes: int, contents: np.ndarray | None) -> int:
    """The descriptor of new memory without a name.

    Its contents are written as to a file: through a mapping each page is missing first, which takes longer.
    """
    descriptor = os.memfd_create("torchlite")
    try:
        if contents is None or not nbytes:
            os.ftruncate(descriptor, max(nbytes, 1))
        else:
            rest = contents.data
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def map_descriptor(descriptor: int, nbytes: int) -> np.ndarray:
    """The memory behind a descriptor, which is closed with it; -1: memory that only forked processes see."""
    try:
        mapping = Mapping(descriptor, nbytes)
    except BaseException:
        if descriptor >= 0:
            os.close(descriptor)
        raise
    if descriptor >= 0:
        mapping.keep(descriptor)
    return np.asarray(mapping)


_numbers = itertools.count()


def new_name() -> str:
    """A unique name in shared memory. The file with this name is removed when the process ends."""
    from torchlite._settings.temporary_folders import process_folder, shared_memory_folder

    return os.path.join(process_folder(shared_memory_folder()), str(next(_numbers)))


def unlink(filename: str) -> None:
    """Remove a name that may be gone."""
    with contextlib.suppress(OSError):
        os.unlink(filename)


def map_file(filename: Any, shared: bool, nbytes: int, own: bool = False) -> np.ndarray:
    """Map the first bytes of a file. RuntimeError if it is shorter and the mapping is not shared. An `own` file is
    removed with the mapping.
    """
    name = os.fspath(filename)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        descriptor = os.open(name, flags, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{name}> in {'read-write' if shared else 'read-only'} mode: {error}")
    try:
        length = os.fstat(descriptor).st_size
        nbytes = nbytes or length
        if nbytes > length:
            if not shared:
                raise RuntimeError(f"file <{name}> is too small: it has {length} bytes, and {nbytes} were asked for")
            os.ftruncate(descriptor, nbytes)
        if not nbytes:
            return np.empty(0, np.uint8)
        mapping = Mapping(descriptor, nbytes, shared, name if shared else None)
    finally:
        os.close(descriptor)
    mapping.own = own
    if own:
        weakref.finalize(mapping, _unlink_if_created_here, name, os.getpid())
    return np.asarray(mapping)


def _unlink_if_created_here(filename: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child does not own it
        unlink(filename)
