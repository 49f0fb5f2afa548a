"""Selection of the CPU engine, deterministic over runs of a program.

It depends on what is installed and built, and on `TORCHLITE_CPU_KERNELS`: an engine's name, or several in the order of
preference. There is no timing, and the choice is fixed for the process. Without the variable, `cc` is used if its
kernels were built (`python -m torchlite build-kernels`) or are installed (`torchlite-nd-kernels`), else NumPy. OpenCL
is used only on request: its results differ from NumPy's in the last bits, and installing or updating a driver must not
change a program's numbers.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from torchlite_backends import CPU_ENGINES, KERNEL_PACKAGES

VARIABLE = "TORCHLITE_CPU_KERNELS"
ENGINES = tuple(CPU_ENGINES)
NUMPY = "numpy"


class CpuEngine(Protocol):
    """Interface of an engine: the class `Engine` in a package's module `cpu_engine`. Only `device` may raise."""

    name: str
    by_default: bool  # used without a request
    least: dict[str, int]  # minimum elements for a launch, by the kernel's cost class (`kernel_overrides`)

    def why_not(self) -> str:
        """Return "" if the engine can serve, else one sentence: the missing part, and the package to install."""
        ...

    def describe(self) -> str:
        """Describe the engine in one line."""
        ...

    def device(self) -> Any:
        """Return the Device for the currently granted threads; None if NumPy is to serve (in a forked child, for
        example).

        It has a context manager `using`, active during a call, and `done()`, which ends one.
        """
        ...

    def fusion_device(self) -> Any:
        """Return the Device for fused groups of compiled programs, which builds on demand; None if NumPy is to
        serve.
        """
        ...

    def own(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        """Return {op name: kernel} over ndarrays in addition to the device's; they fall back to `plain`."""
        ...

    def small_array_kernels(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        """Return {op name: kernel} faster than NumPy's for ndarrays of any size; they fall back to `plain`."""
        ...

    def convolutions(self) -> Any:
        """Return convolutions like `torchlite_backends.cc.convolution.Convolutions`; None if NumPy is to compute
        them.
        """
        ...

    def integer_products(self) -> Any:
        """Return products of 8-bit levels like `torchlite_backends.cc.native_integer_gemm.IntegerProducts`; None if
        NumPy is to compute them.
        """
        ...

    def bind_convolution(self, plan: Any, weight: Any, bias: Any, finish: Any) -> Callable | None:
        """Return a convolution with constant weights as a function of its images; None if NumPy is to compute it."""
        ...

    def channels_last(self) -> Any:
        """Return kernels for images whose channels are last, like `torchlite_backends.cc.channels_last.ChannelsLast`.
        None if there are none.
        """
        ...

    def bind_lstm_steps(self, *arrays: Any) -> Callable | None:
        """Return a function in place of `torchlite_backends.numpy.lstm._run_forward_steps` for arrays of these dtypes.
        None if NumPy is to run the steps.
        """
        ...

    def bind_recurrent_steps(self, cell: Any, constants: Any) -> Callable | None:
        """Return `_recurrent_steps` with constant weights as a function of the other arrays (see
        `torchlite_backends.numpy.recurrent.bind_steps`). None if NumPy is to run the steps.
        """
        ...

    def chain_serves(self, name: str, operands: int, dtypes: list) -> bool:
        """True if a chain of elementwise ops may have this op."""
        ...

    def bind_chain(
        self, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: dict
    ) -> Callable | None:
        """Return a chain of elementwise ops as a function of arrays (`torchlite_backends.cc.native_chain.bind_chain`).
        None if the ops are to run one by one.
        """
        ...

    # `(a, b, out, bias, by_rows, parts) -> bool`: a product of matrices, or its parts along the rows or the columns of
    # the result; the same numbers for any number of threads; whether that was done. None where NumPy's threads are to
    # do it.
    products: Callable[..., bool] | None

    # `(row, matrix, bias)`: the product of one row as a matrix, with a vector added or None; None where NumPy is to.
    gemv: Callable[[Any, Any, Any], Any] | None

    # `(array, dtype)`: half precision in float32, or the reverse, in a new array. `(lines, row)`: the product of
    # half-precision lines with a float32 row, in float32. `(vector, vector)`: their product, a float. `(op, first,
    # second, out)`: add, sub, mul or div of half precision and a number, in `out` unless that is None. None, or a
    # result of None, where NumPy is to compute.
    cast_half: Callable[[Any, Any], Any] | None
    half_gemv: Callable[[Any, Any], Any] | None
    half_dot: Callable[[Any, Any], Any] | None
    half_number: Callable[..., Any] | None

    # `(address, out) -> bool`: fill `out`, full blocks, with outputs of NumPy's MT19937 whose C struct is at that
    # address; True if done. None if NumPy is to do it.
    words: Callable[[int, Any], bool] | None

    # `(words, out) -> bool`: fill `out`, float64, with uniforms of two words each. None if NumPy is to do it.
    doubles: Callable[[Any, Any], bool] | None

    # `(device, run, arguments)`: the result of `run()`, a kernel's call, and its launch as a function of such arguments
    # or None. None if launches are not kept.
    run_and_keep: Callable[..., tuple[Any, Any]] | None

    # `(words, state, arrays) -> bool`: gamma, binomial or Poisson samples from words of PyTorch's stream, as far as
    # they last (`torchlite_backends.numpy.native_sampling`). None if NumPy is to do it.
    samples: Callable[[Any, Any, tuple], bool] | None

    # `(words, out, mean, std) -> bool`: fill `out`, float32 of a multiple of 16, with normals in blocks of 16.
    # `(words, out) -> bool`: fill `out`, int64, with the permutation of the words. None if NumPy is to do it.
    normals: Callable[[Any, Any, float, float], bool] | None
    permutation: Callable[[Any, Any], bool] | None

    def min_gemm_muls(self) -> int:
        """Minimum multiplications of a product for this engine, fewer than several threads are worth."""
        ...


class BuildableEngine(CpuEngine, Protocol):
    """An engine whose kernels can be built in advance."""

    def why_not_buildable(self) -> str:
        """Return why kernels cannot be built in advance, or ""."""
        ...

    def record_programs(self, run: Callable[[], None]) -> list[str]:
        """Return the sources of the programs that the engine would build during `run()`."""
        ...

    def build_programs(self, texts: list[str], done: Callable[[int, int], None]) -> list[str]:
        """Build programs; return the compiler's messages of those that failed."""
        ...

    def archive_programs(self, texts: list[str], path: str) -> None:
        """Write an archive of built programs, for a distribution."""
        ...


class Selection(NamedTuple):
    """The selected engine (None: NumPy), and why preferred ones cannot serve, by name."""

    engine: CpuEngine | None
    missing: dict[str, str]

    @property
    def name(self) -> str:
        return NUMPY if self.engine is None else self.engine.name


def load_engine(name: str) -> CpuEngine:
    """An engine by its name."""
    return importlib.import_module(CPU_ENGINES[name]).engine


def select_buildable_engine() -> BuildableEngine:
    """Return the engine whose kernels `python -m torchlite build-kernels` builds."""
    return importlib.import_module(CPU_ENGINES["cc"]).engine


def _engine_unavailability_reason(name: str) -> str:
    try:
        return load_engine(name).why_not()
    except Exception as error:  # a broken package must not break the CPU
        return str(error) or type(error).__name__


def requested_engines() -> list[str]:
    """Return the names in `TORCHLITE_CPU_KERNELS`, in order. RuntimeError for an unknown one."""
    names = [word.strip().lower() for word in os.environ.get(VARIABLE, "").split(",") if word.strip()]
    for name in names:
        if name not in (NUMPY, *ENGINES):
            raise RuntimeError(f"{VARIABLE} names '{name}', and there are {NUMPY}, {' and '.join(ENGINES)}")
    return names


@functools.cache
def select_engine() -> Selection:
    """Return this process's engine. Warns if none of the requested ones is available. RuntimeError for an unknown name
    of an engine or a level.
    """
    from torchlite_backends.device_runtime.core import processor_level

    names = requested_engines()
    processor_level.requested_level()  # raises for an unknown one
    missing: dict[str, str] = {}
    for name in names or ENGINES:
        if name == NUMPY:
            break
        if not names and not _may_serve(name):
            continue
        missing[name] = _engine_unavailability_reason(name)
        if not missing[name]:
            del missing[name]
            return Selection(load_engine(name), missing)
    else:
        if names:
            reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
            warnings.warn(f"{VARIABLE}={','.join(names)}, but NumPy's kernels serve. {reasons}", stacklevel=2)
    return Selection(None, missing)


def find_native(name: str) -> Callable[..., Any] | None:
    """Return the selected engine's function of this name; None if NumPy serves."""
    engine = select_engine().engine
    return None if engine is None else getattr(engine, name)


def _may_serve(name: str) -> bool:
    """True if an engine may serve without a request: a marker file in its folder says that its kernels are prebuilt, or
    their distribution is installed.

    Most programs need no more than this check.
    """
    from torchlite_backends.device_runtime.core import program_cache

    package = KERNEL_PACKAGES.get(name)
    there = (package and importlib.util.find_spec(package)) or any(
        program_cache.program_cache_folder(name).glob("*.built")
    )
    return bool(there) and load_engine(name).by_default


def report_engines() -> list[tuple[str, str]]:
    """Return for each engine its name and a line: in use, or why not."""
    try:
        choice = select_engine()
    except RuntimeError as error:
        return [(VARIABLE, str(error))]
    lines = [(NUMPY, "serves" if choice.engine is None else "serves what the other one does not take")]
    for name in ENGINES:
        if choice.name == name and choice.engine is not None:
            lines.append((name, f"serves: {choice.engine.describe()}"))
            continue
        why = choice.missing.get(name) or _engine_unavailability_reason(name)
        lines.append((name, f"absent: {why}" if why else f"ready, not chosen; {VARIABLE}={name} chooses it"))
    return lines
