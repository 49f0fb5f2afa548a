"""Ahead-of-time build: record which programs some code requests, without running them, build and archive them."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchlite_backends.kernel_sources import opencl_to_cpp

from . import convolution, cxx_compiler, kernel_archive, kernel_distribution, native_chain, program_build, thread_pool
from . import integer_gemm_source as integer_gemm
from . import weight_only_source as weight_only
from .device import Device


class RecordingDevice(Device):
    """Device that records requested programs instead of building and launching them. Outputs of its kernels stay
    unset.
    """

    chains = False
    least_pairs = 1

    def __init__(self) -> None:
        super().__init__(0, True)
        self.texts: dict[str, None] = {}

    def build(self, text: str) -> Any:
        self.texts[opencl_to_cpp.to_cpp_program(text)] = None
        return None

    def kernel(self, program: Any, name: str, signature: str) -> Any:
        return _NoopKernel()

    def native(self, text: str, name: str) -> Any:
        self.texts[text] = None
        return _NoopKernel()


class _NoopKernel:
    """Kernel that does nothing."""

    def __call__(self, *arguments: Any) -> None:
        """Do nothing."""

    def start(self, *arguments: Any) -> None:
        """Do nothing."""

    def launch(self, *arguments: Any) -> int:
        return 0

    def max_group(self) -> int:
        return 1


def record_programs(engine: Any, run: Callable[[], None]) -> list[str]:
    """Return the sources of the programs that `engine` would build during `run()`, whose results are meaningless."""
    noted, before = RecordingDevice(), (engine._device, engine.least)
    engine._device, engine.least = noted, dict.fromkeys(engine.least, 1)  # arrays of any size stand in for large ones
    engine.records = True
    try:
        run()
    finally:
        engine._device, engine.least = before
        engine.records = False
    return list(noted.texts)


def complete_programs(texts: Iterable[str]) -> list[str]:
    """Return the programs with those of every program: threads, convolutions, chains and integers."""
    integers = integer_gemm.BYTES, integer_gemm.INTEGERS, weight_only.WEIGHT_ONLY
    own = thread_pool.SOURCE, convolution.SOURCE, native_chain.SOURCE, *integers
    return list(dict.fromkeys((*texts, *own)))


def build_programs(texts: Iterable[str], done: Callable[[int, int], None]) -> list[str]:
    """Build those programs that are not in the disk cache, as many at a time as there are processors.

    Calls `done(finished, total)` after each. Returns the compiler's messages for failed programs.
    """
    if cxx_compiler.why_not():
        raise RuntimeError(cxx_compiler.why_not())
    missing = [(text, program_build.cache_path(text)) for text in complete_programs(texts)]
    missing = [(text, path) for text, path in missing if program_build.open_cached(path) is None]
    failed: list[str] = []
    lock, count = threading.Lock(), 0

    def build_program(item: tuple) -> None:
        nonlocal count
        try:
            program_build.build_to(*item)
        except (RuntimeError, OSError) as error:
            failed.append(str(error))
        with lock:
            count += 1
            done(count, len(missing))

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        list(threads.map(build_program, missing))
    try:
        program_build.mark_prebuilt()
    except OSError as error:
        failed.append(str(error))
    return failed


def archive_programs(texts: Iterable[str], path: str) -> None:
    """Write an archive of built programs of this process's level. RuntimeError if one is not built."""
    programs = []
    for text in complete_programs(texts):
        library = program_build.read_cached(program_build.cache_path(text))
        if library is None:
            raise RuntimeError("a kernel is not built")
        programs.append((kernel_archive.program_key(text), library))
    facts = {
        "version": kernel_distribution.own_version(),
        "level": program_build.select_level(),
        "flags": cxx_compiler.flags(program_build.select_level()),
        "compiler": cxx_compiler.version(),
        "libc": " ".join(platform.libc_ver()),
        "sources": kernel_distribution.source_digest(),
    }
    kernel_archive.write_archive(Path(path), programs, facts)
