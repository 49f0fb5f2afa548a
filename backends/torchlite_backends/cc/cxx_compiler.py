"""The C++ compiler: its command, flags, and identification for cache keys."""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

from torchlite_backends.device_runtime.core import processor_level
from torchlite_backends.device_runtime.core.device import NotBuiltError, with_line_numbers

from . import load_library

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
def _processor_id() -> str:
    """Return the processor's identification, on which `-march=native` depends."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part", "CPU implementer")
    first = text.split("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.split("\t")[0].split(":")[0].strip() in wanted)


@functools.cache
def flags(level: str = processor_level.NATIVE) -> tuple[str, ...]:
    """Return the compiler flags of all programs of a level.

    g++ tunes code for Intel's processors with AVX-512 by copies of half vectors. A load of the whole vector then waits
    until both halves are stored, ten times as long as the load of a vector. So code is tuned for no processor.
    """
    native = {"aarch64": ("-mcpu=native",), "arm64": ("-mcpu=native",), "x86_64": ("-march=native", "-mtune=generic")}
    named = {processor_level.NATIVE: native.get(platform.machine(), ("-march=native",)), processor_level.BASELINE: ()}
    return (*_FLAGS, *named.get(level, (f"-march={level}",)), *_SANITIZERS.get(sanitizer(), ()))


@functools.cache
def toolchain_id(level: str = processor_level.NATIVE) -> str:
    """Return an identifier of compiler, flags and processor: the inputs of a build besides its source."""
    path, *more = compiler() or ("none",)
    real = Path(path).resolve()
    stamp = f"{real.stat().st_size} {real.stat().st_mtime_ns}" if real.exists() else ""
    processor = _processor_id() if level == processor_level.NATIVE else level
    return "\n".join((str(real), stamp, *more, *flags(level), processor, platform.libc_ver()[1]))


def version() -> str:
    """Return the first line that the compiler says of its version."""
    command = [*compiler(), "--version"]
    return (subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines() or [""])[0]


def explain_tempdir_error(error: OSError) -> NotBuiltError:
    why = f"{error.strerror} (in {tempfile.gettempdir()})" if error.strerror else str(error)
    _warn_once(why)
    return NotBuiltError(f"kernels cannot be built: {why}")


def compile_program(text: str, name: str, level: str = processor_level.NATIVE) -> bytes:
    """Return the bytes of a library for a level, built in a private folder."""
    with tempfile.TemporaryDirectory(dir=load_library.ensure_private_folder()) as folder:
        place = Path(folder) / name
        _run_compiler(text, place, level)
        return place.read_bytes()


def _run_compiler(text: str, place: Path, level: str) -> None:
    command = [*compiler(), *flags(level), "-", "-o", str(place), *_libraries()]
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
    with tempfile.TemporaryDirectory(dir=load_library.ensure_private_folder()) as folder:
        command = [*compiler(), "-shared", "-fPIC", "-x", "c++", "-", "-o", str(Path(folder) / "a.so"), library]
        return not subprocess.run(command, check=False, input="", capture_output=True, text=True).returncode


@functools.cache
def _warn_once(why: str) -> None:
    """Warn once per process for each reason."""
    warnings.warn(f"kernels cannot be built, NumPy's serve: {why}. Set TMPDIR to a folder of your own", stacklevel=5)
