"""Entry point of the CPU engine "cc"; imports the compiled code only when its device is requested."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from torchlite._settings import fork_locks
from torchlite_backends.device_runtime.core import processor_level
from torchlite_backends.device_runtime.core.device import NotBuiltError

from . import cxx_compiler, kernel_distribution, program_build


class Engine:
    """See `torchlite_backends.cpu_engines.engine_selection.CpuEngine`.

    By default the engine uses programs of the distribution `torchlite-nd-kernels`, or that `python -m torchlite
    build-kernels` built, and starts no compiler. If `TORCHLITE_CPU_KERNELS` names it and there is a compiler, it builds
    other programs on first use.
    """

    name, by_default = "cc", True
    # A launch takes some microseconds, on one thread for small arrays.
    least: dict[str, int] = {"pass": 1 << 19, "cheap": 1 << 16, "middle": 1 << 15, "dear": 1 << 15}

    def __init__(self) -> None:
        self._device: Any = None
        self._joining: Any = None
        self._convolutions: Any = None
        self._integers: Any = None
        self.records = False  # during `prebuild.record_programs`: nothing is loaded, built or run
        self._lock = fork_locks.acquire_before_fork(threading.RLock())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._device = self._joining = self._integers = None  # another thread may have locked the device

    def why_not(self) -> str:
        if self.records:
            return ""
        why = processor_level.why_not(program_build.select_level())
        if why or program_build.is_distributed():
            return why
        if is_requested():
            return cxx_compiler.why_not()
        if program_build.is_prebuilt():
            return ""
        refused = kernel_distribution.find_distribution().why_not
        return refused or f"no kernels are installed or built: {processor_level.HOW_TO_GET_KERNELS}"

    def describe(self) -> str:
        if program_build.is_distributed():
            found = kernel_distribution.find_distribution()
            name = f"{kernel_distribution.DISTRIBUTION} {found.version}"
            return f"{len(found.archive or ())} kernels of {name} for {found.level}"
        return f"kernels built by {' '.join(cxx_compiler.compiler()) or 'a compiler that is gone'}"

    def device(self) -> Any:
        if self._device is None:
            with self._lock:
                if self._device is None:
                    from .device import Device

                    made = Device(0, may_build())
                    made.chains = False  # the caller reads the result at once
                    if self._device is None:  # no handler of a signal was first
                        self._device = made
        return self._device

    def fusion_device(self) -> Any:
        """Return a device that builds its programs if there is a compiler: a compiled function waits for them."""
        if self._joining is None:
            shared = self.device()
            with self._lock:
                if self._joining is None:
                    from .device import Device

                    made = Device(0, not cxx_compiler.why_not())
                    made.using = shared.using
                    if self._joining is None:
                        self._joining = made
        return self._joining

    def own(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        from .native_kernel import override_kernels

        return override_kernels(self, plain)

    def small_array_kernels(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        from .native_kernel import override_kernels

        return override_kernels(self, plain, ("native_small_arrays",))

    def convolutions(self) -> Any:
        """Return the float32 convolutions (`convolution.Convolutions`), or None if they are not built."""
        if self.records:
            return None
        if self._convolutions is None:
            from .convolution import load_convolutions

            self._convolutions = load_convolutions(may_build()) or False
        return self._convolutions or None

    def integer_products(self) -> Any:
        """Return the products of 8-bit levels (`native_integer_gemm.IntegerProducts`)."""
        device = self.device()
        if self._integers is None or self._integers._device is not device:
            from .native_integer_gemm import IntegerProducts

            self._integers = IntegerProducts(device)
        return self._integers

    def bind_convolution(self, plan: Any, weight: Any, bias: Any, finish: Any) -> Any:
        from .bound_convolution import bind_forward

        serving = self.convolutions()
        return None if serving is None else bind_forward(serving, plan, weight, bias, finish)

    def channels_last(self) -> Any:
        """Return the kernels for images whose channels are last, or None if they are not built."""
        from .channels_last import ChannelsLast

        serving = self.convolutions()
        return None if serving is None else ChannelsLast(serving)

    def bind_lstm_steps(self, *arrays: Any) -> Any:
        from .native_lstm import bind_forward_steps

        try:
            return bind_forward_steps(self.device(), *arrays)
        except NotBuiltError:
            return None

    def bind_recurrent_steps(self, cell: Any, constants: Any) -> Any:
        from .native_recurrent import bind_steps

        try:
            return bind_steps(self.device(), cell, constants)
        except NotBuiltError:
            return None

    def chain_serves(self, name: str, operands: int, dtypes: list) -> bool:
        from .native_chain import serves

        return serves(name, operands, dtypes)

    def bind_chain(self, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: Any = None) -> Any:
        from .native_chain import bind_chain

        try:
            return bind_chain(self.device(), shape, given, steps, outs, dtypes)
        except NotBuiltError:
            return None

    def min_gemm_muls(self) -> int:
        """Minimum of the AVX-512 kernel; products that BLAS computes must be worth several threads."""
        from .native_gemm import MIN_MULS

        return MIN_MULS if processor_level.has_avx512() else 1 << 62

    def products(self, *of: Any) -> bool:
        from .native_parallel_gemm import parallel_gemm

        try:
            return parallel_gemm(self.device(), *of)
        except NotBuiltError:
            return False

    def gemv(self, row: Any, matrix: Any, bias: Any) -> Any:
        from .native_gemv import gemv

        try:
            return gemv(self.device(), row, matrix, bias)
        except NotBuiltError:
            return None

    def cast_half(self, x: Any, dtype: Any) -> Any:
        from .native_half import cast

        try:
            return cast(self.device(), x, dtype)
        except NotBuiltError:
            return None

    def half_gemv(self, lines: Any, row: Any) -> Any:
        from .native_half import half_gemv

        try:
            return half_gemv(self.device(), lines, row)
        except NotBuiltError:
            return None

    def half_dot(self, first: Any, second: Any) -> Any:
        from .native_half import dot

        try:
            return dot(self.device(), first, second)
        except NotBuiltError:
            return None

    def half_number(self, op: str, first: Any, second: Any, out: Any = None) -> Any:
        from .native_half import with_number

        try:
            return with_number(self.device(), op, first, second, out)
        except NotBuiltError:
            return None

    def run_and_keep(self, device: Any, run: Callable[[], Any], arguments: tuple) -> tuple[Any, Any]:
        from .repeated_launch import run_and_keep

        return run_and_keep(device, run, arguments)

    def words(self, state: int, out: Any) -> bool:
        from .native_mt19937 import fill_words

        try:
            return fill_words(self.device(), state, out)
        except NotBuiltError:
            return False

    def doubles(self, words: Any, out: Any) -> bool:
        from .native_mt19937 import fill_doubles

        try:
            return fill_doubles(self.device(), words, out)
        except NotBuiltError:
            return False

    def samples(self, words: Any, state: Any, arrays: tuple) -> bool:
        from .native_samplers import consume_words

        try:
            return consume_words(self.device(), words, state, arrays)
        except NotBuiltError:
            return False

    def normals(self, words: Any, out: Any, mean: float, std: float) -> bool:
        from .native_normals import box_muller

        try:
            return box_muller(self.device(), words, out, mean, std)
        except NotBuiltError:
            return False

    def permutation(self, words: Any, out: Any) -> bool:
        from .native_normals import permute

        try:
            return permute(self.device(), words, out)
        except NotBuiltError:
            return False

    def why_not_buildable(self) -> str:
        """Why kernels cannot be built in advance, in a sentence; empty where they can. RuntimeError if the level that
        is named is none.
        """
        processor_level.requested_level()
        return cxx_compiler.why_not()

    def record_programs(self, run: Callable[[], None]) -> list[str]:
        """See `prebuild.record_programs`."""
        from .prebuild import record_programs

        return record_programs(self, run)

    def build_programs(self, texts: list[str], done: Callable[[int, int], None]) -> list[str]:
        """See `prebuild.build_programs`."""
        from .prebuild import build_programs

        return build_programs(texts, done)

    def archive_programs(self, texts: list[str], path: str) -> None:
        """See `prebuild.archive_programs`."""
        from .prebuild import archive_programs

        archive_programs(texts, path)


def may_build() -> bool:
    """True if ops may wait for the compiler: the user named this engine, and there is one."""
    return is_requested() and not cxx_compiler.why_not()


def is_requested() -> bool:
    """True if the user named this engine."""
    names = os.environ.get("TORCHLITE_CPU_KERNELS", "").lower().split(",")
    return "cc" in [name.strip() for name in names]


engine = Engine()
