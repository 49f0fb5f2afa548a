"""The C++ compiler, its flags, and the disk cache of compiled programs.

A cache file is named by a digest of the source, the compiler (path, size and modification time), the flags and the
processor's features. A run that finds all its programs starts no compiler.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

from torchlite._settings import cache_files
from torchlite_backends.device_runtime.core import program_cache
from torchlite_backends.device_runtime.core.device import NotBuiltError, with_line_numbers
from torchlite_backends.kernel_sources.c_preamble import CPP

from . import shared_library

_FLAGS = (
    "-x", "c++", "-std=c++17", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w",
    "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
    "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
)  # fmt: skip
_SANITIZERS = {
    "address": ("-fsanitize=address", "-fno-omit-frame-pointer", "-g1", "-O1"),
    "undefined": ("-fsanitize=undefined", "-fno-sanitize=alignment", "-fno-sanitize-recover=undefined", "-g1", "-O1"),
}
_LIBRARIES = ("-lm", "-pthread")


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of the C++ compiler: `CXX`, else the first of c++, g++ and clang++; empty if none exists."""
    for named in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        command = shlex.split(named)
        path = shutil.which(command[0]) if command else None
        if path:
            return path, *command[1:]
    return ()


def why_not() -> str:
    """Return a sentence why programs cannot be built; empty if they can."""
    if compiler():
        return ""
    return "no C++ compiler was found: install g++ or clang++ (build-essential), or name one in the variable CXX"


def sanitizer() -> str:
    """Return the sanitizer of `TORCHLITE_CC_SANITIZE`: "address", "undefined", or ""."""
    named = os.environ.get("TORCHLITE_CC_SANITIZE", "")
    if named and named not in _SANITIZERS:
        raise ValueError(f"TORCHLITE_CC_SANITIZE is {named!r}: use one of {', '.join(_SANITIZERS)}")
    return named


@functools.cache
def _processor() -> str:
    """Return the processor's identification, on which `-march=native` depends."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part", "CPU implementer")
    first = text.split("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.split("\t")[0].split(":")[0].strip() in wanted)


@functools.cache
def flags() -> tuple[str, ...]:
    """Return the compiler flags of all programs."""
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    return (*_FLAGS, native, *_SANITIZERS.get(sanitizer(), ()))


@functools.cache
def toolchain_id() -> str:
    """Return an identifier of compiler, flags and processor: the inputs of a build besides its source."""
    path, *more = compiler() or ("none",)
    real = Path(path).resolve()
    stamp = f"{real.stat().st_size} {real.stat().st_mtime_ns}" if real.exists() else ""
    return "\n".join((str(real), stamp, *more, *flags(), _processor(), platform.libc_ver()[1]))


def _prebuilt_marker() -> Path:
    """Return the path of the marker file for kernels of this version prebuilt by this compiler for this processor."""
    return (
        program_cache.program_folder("cc")
        / f"{hashlib.sha256(f'{toolchain_id()} {CPP}'.encode()).hexdigest()[:16]}.built"
    )


@functools.cache
def is_prebuilt() -> bool:
    """True if kernels were prebuilt."""
    return program_cache.is_enabled() and cache_files.read(_prebuilt_marker()) == toolchain_id().encode()


def mark_prebuilt() -> None:
    """Write the marker for prebuilt kernels."""
    cache_files.write(_prebuilt_marker(), toolchain_id().encode())


def cache_path(text: str) -> Path:
    """Return the cache path of the library for a source."""
    name = hashlib.sha256(f"{toolchain_id()}\n{text}".encode()).hexdigest()
    return program_cache.program_folder("cc") / name[:2] / f"{name}.so"


def load(text: str, may_build: bool = True) -> ctypes.CDLL:
    """Load the library of a source; build it if allowed.

    NotBuiltError if it is not cached and must not be built, or if there is no cache folder; RuntimeError with the
    compiler's log if the build fails.
    """
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
        data = _compile_bytes(text, path.name)
    except OSError as error:
        raise _tempdir_error(error) from None
    if program_cache.is_enabled():
        try:
            _store(path, data)
        except OSError as error:
            program_cache.warn_not_writable(program_cache.program_folder("cc"), error)
    try:
        return shared_library.load_bytes(data, path.name)
    except OSError as error:
        raise _tempdir_error(error) from None


def _tempdir_error(error: OSError) -> NotBuiltError:
    why = f"{error.strerror} (in {tempfile.gettempdir()})" if error.strerror else str(error)
    _warn(why)
    return NotBuiltError(f"kernels cannot be built: {why}")


@functools.cache
def _warn(why: str) -> None:
    """Warn once per process for each reason."""
    warnings.warn(f"kernels cannot be built, NumPy's serve: {why}. Set TMPDIR to a folder of your own", stacklevel=5)


def build_to(text: str, path: Path) -> None:
    """Build a program into its cache file. OSError if the cache is not writable."""
    _store(path, _compile_bytes(text, path.name))


def _store(path: Path, data: bytes) -> None:
    cache_files.write(path, data + program_cache.digest(path.name, data))


def open_cached(path: Path) -> ctypes.CDLL | None:
    """Open a cached library; None if it is missing, damaged, or writable by another user."""
    data = cache_files.read(path)
    if data is None or program_cache.digest(path.name, data[: -program_cache.DIGEST]) != data[-program_cache.DIGEST :]:
        return None
    try:
        return shared_library.load_bytes(data[: -program_cache.DIGEST], path.name)
    except OSError:
        return None


def _compile_bytes(text: str, name: str) -> bytes:
    """Return the bytes of a library, built in a private folder."""
    with tempfile.TemporaryDirectory(dir=shared_library.private_folder()) as folder:
        place = Path(folder) / name
        _compile(text, place)
        return place.read_bytes()


def _compile(text: str, place: Path) -> None:
    command = [*compiler(), *flags(), "-", "-o", str(place), *_libraries()]
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment |= {"LC_ALL": "C", "TMPDIR": str(place.parent)}
    done = subprocess.run(command, check=False, input=text, capture_output=True, text=True, env=environment)
    if done.returncode:
        kernel = text.partition('#line 1 "kernel"\n')[2]
        raise RuntimeError(f"{command[0]} could not build a kernel:\n{done.stderr}\n{with_line_numbers(kernel)}")


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Return -lmvec on glibc."""
    vectors = platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")
    return ("-lmvec", *_LIBRARIES) if vectors and _can_link("-lmvec") else _LIBRARIES


@functools.cache
def _can_link(library: str) -> bool:
    with tempfile.TemporaryDirectory(dir=shared_library.private_folder()) as folder:
        command = [*compiler(), "-shared", "-fPIC", "-x", "c++", "-", "-o", str(Path(folder) / "a.so"), library]
        return not subprocess.run(command, check=False, input="", capture_output=True, text=True).returncode
