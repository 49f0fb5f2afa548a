"""Build, disk cache and loading of compiled programs.

A program comes from the distribution of kernels that were compiled ahead (`kernel_distribution`), from the disk cache,
or from the compiler. A cache file is named by a digest of the source, the compiler (path, size and modification time),
the flags and the processor's features. A run that finds all its programs starts no compiler.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from pathlib import Path

from torchlite._settings import cache_files
from torchlite_backends.device_runtime.core import processor_level, program_cache
from torchlite_backends.device_runtime.core.device import NotBuiltError
from torchlite_backends.kernel_sources.c_preamble import CPP

from . import kernel_distribution, load_library
from .cxx_compiler import compile_program, explain_tempdir_error, toolchain_id, why_not


@functools.cache
def select_level() -> str:
    """Return the level for which this process loads and builds all its programs.

    It is the one that `TORCHLITE_CPU_LEVEL` names. Else it is the processor's own if a user has built kernels for it
    (`build-kernels`), then the level of the installed distribution, then again the processor's own. Eager ops and
    groups of a compiled function therefore have the same instructions, whatever built them.
    """
    named = processor_level.requested_level()
    if named:
        return named
    if is_prebuilt(processor_level.NATIVE):
        return processor_level.NATIVE
    return kernel_distribution.find_distribution().level or processor_level.NATIVE


@functools.cache
def is_distributed() -> bool:
    """True if programs come from the installed distribution first."""
    level = select_level()
    return level != processor_level.NATIVE and kernel_distribution.find_distribution().level == level


def _prebuilt_marker_path(level: str) -> Path:
    """Return the path of the marker file for kernels of this version prebuilt by this compiler for a level."""
    name = hashlib.sha256(f"{toolchain_id(level)} {CPP}".encode()).hexdigest()[:16]
    return program_cache.program_cache_folder("cc") / f"{name}.built"


@functools.cache
def is_prebuilt(level: str = "") -> bool:
    """True if kernels of a level were prebuilt; by default of this process's."""
    level = level or select_level()
    made = toolchain_id(level).encode()
    return program_cache.is_enabled() and cache_files.read(_prebuilt_marker_path(level)) == made


def mark_prebuilt() -> None:
    """Write the marker for prebuilt kernels."""
    level = select_level()
    cache_files.write(_prebuilt_marker_path(level), toolchain_id(level).encode())


def cache_path(text: str) -> Path:
    """Return the cache path of the library for a source."""
    name = hashlib.sha256(f"{toolchain_id(select_level())}\n{text}".encode()).hexdigest()
    return program_cache.program_cache_folder("cc") / name[:2] / f"{name}.so"


def load_program(text: str, may_build: bool = True) -> ctypes.CDLL:
    """Load the library of a source; build it if allowed.

    NotBuiltError if it is neither distributed nor cached and must not be built, or if there is no cache folder;
    RuntimeError with the compiler's log if the build fails.
    """
    library = kernel_distribution.load_program(text) if is_distributed() else None
    if library is not None:
        return library
    path = cache_path(text)
    if program_cache.is_enabled():
        library = open_cached(path)
        if library is not None:
            return library
    if not may_build:
        raise NotBuiltError("a kernel is not built: python -m torchlite build-kernels")
    if why_not():
        raise RuntimeError(why_not())
    try:
        data = compile_program(text, path.name, select_level())
    except OSError as error:
        raise explain_tempdir_error(error) from None
    if program_cache.is_enabled():
        try:
            _store_library(path, data)
        except OSError as error:
            program_cache.warn_not_writable(program_cache.program_cache_folder("cc"), error)
    try:
        return load_library.load_library_from_bytes(data, path.name)
    except OSError as error:
        raise explain_tempdir_error(error) from None


def build_to(text: str, path: Path) -> None:
    """Build a program into its cache file. OSError if the cache is not writable."""
    _store_library(path, compile_program(text, path.name, select_level()))


def _store_library(path: Path, data: bytes) -> None:
    cache_files.write(path, data + program_cache.digest_binary(path.name, data))


def read_cached(path: Path) -> bytes | None:
    """Return the bytes of a cached library; None if it is missing, damaged, or writable by another user."""
    data = cache_files.read(path)
    if data is None:
        return None
    library, digest = data[: -program_cache.DIGEST], data[-program_cache.DIGEST :]
    return library if program_cache.digest_binary(path.name, library) == digest else None


def open_cached(path: Path) -> ctypes.CDLL | None:
    """Open a cached library; None if it is missing, damaged, or writable by another user."""
    library = read_cached(path)
    try:
        return None if library is None else load_library.load_library_from_bytes(library, path.name)
    except OSError:
        return None
