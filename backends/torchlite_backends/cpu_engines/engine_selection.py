"""Which engine serves: the same in every run of a program.

It follows from what is installed and built, and from `TORCHLITE_CPU_KERNELS`: an engine's name, or several in the order
of preference. Nothing is timed, and nothing changes it while the process lives. Without the variable `cc` serves if its
kernels were built (`python -m torchlite build-kernels` is a user's wish), else NumPy. OpenCL serves only where it is
asked for: its results differ from NumPy's in the last bits, and a driver that happens to be installed, or is updated
with the system, must not change a program's numbers.
"""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from torchlite_backends import CPU_ENGINES

VARIABLE = "TORCHLITE_CPU_KERNELS"
ENGINES = tuple(CPU_ENGINES)
NUMPY = "numpy"


class CpuEngine(Protocol):
    """What a package of an engine has in its module `engine`, under that name. Nothing of it raises but `device`."""

    name: str
    by_default: bool  # whether it serves where nobody chose
    least: dict[str, int]  # by the cost of a kernel (`table`): elements from which a launch is worth while

    def why_not(self) -> str:
        """ "" when it can serve, else one sentence saying what is missing and what to install."""
        ...

    def describe(self) -> str:
        """What it is, in a line."""
        ...

    def device(self) -> Any:
        """The Device for the threads that are granted now; None where NumPy is to serve (in a forked child, say). It
        has a context `using`, which is held during a call, and `done()`, which ends one.
        """
        ...

    def fusion_device(self) -> Any:
        """The Device for what a compiled program joins, which builds what it needs; None where NumPy is to serve."""
        ...

    def own(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        """By op, kernels over ndarrays beside those of its device, which ask those of `plain` where they do not
        serve.
        """
        ...

    def small_array_kernels(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        """By op, kernels over ndarrays of any size that are quicker than NumPy's, of those in `plain`, which they ask
        where they do not serve.
        """
        ...

    def convolutions(self) -> Any:
        """What computes convolutions, as `torchlite_backends.cc.convolution.Convolutions`; None where NumPy is to."""
        ...

    # `(a, b, out, bias, by_rows, parts) -> bool`: a product of matrices, or its parts along the rows or the columns of
    # the result; the same numbers for any number of threads; whether that was done. None where NumPy's threads are to
    # do it.
    products: Callable[..., bool] | None

    # `(row, matrix, bias)`: the product of one row as a matrix, with a vector added or None; None where NumPy is to.
    gemv: Callable[[Any, Any, Any], Any] | None

    # `(address, out) -> bool`: whole blocks of words of NumPy's Mersenne twister whose C struct is at that address;
    # whether that was done. None where NumPy is to do it.
    words: Callable[[int, Any], bool] | None

    def min_gemm_muls(self) -> int:
        """Multiplications of a product from which on that is worth asking, fewer than are worth several threads."""
        ...


class Selection(NamedTuple):
    """The engine that serves (None: NumPy), and why those that would have come first do not, by name."""

    engine: CpuEngine | None
    missing: dict[str, str]

    @property
    def name(self) -> str:
        return NUMPY if self.engine is None else self.engine.name


def load_engine(name: str) -> CpuEngine:
    """An engine by its name."""
    return importlib.import_module(CPU_ENGINES[name]).engine


def _why_not(name: str) -> str:
    try:
        return load_engine(name).why_not()
    except Exception as error:  # a broken package must not break the CPU
        return str(error) or type(error).__name__


def requested_engines() -> list[str]:
    """The names in `TORCHLITE_CPU_KERNELS`, in order. RuntimeError for one that is no engine's."""
    names = [word.strip().lower() for word in os.environ.get(VARIABLE, "").split(",") if word.strip()]
    for name in names:
        if name not in (NUMPY, *ENGINES):
            raise RuntimeError(f"{VARIABLE} names '{name}', and there are {NUMPY}, {' and '.join(ENGINES)}")
    return names


@functools.cache
def select_engine() -> Selection:
    """The engine that serves in this process. Warns where none that was asked for is there."""
    names = requested_engines()
    missing: dict[str, str] = {}
    for name in names or ENGINES:
        if name == NUMPY:
            break
        if not names and not _serves_by_default(name):
            continue
        missing[name] = _why_not(name)
        if not missing[name]:
            del missing[name]
            return Selection(load_engine(name), missing)
    else:
        if names:
            said = "; ".join(f"{name}: {why}" for name, why in missing.items())
            warnings.warn(f"{VARIABLE}={','.join(names)}, but NumPy's kernels serve. {said}", stacklevel=2)
    return Selection(None, missing)


def _serves_by_default(name: str) -> bool:
    """Whether an engine serves where nobody chose: its kernels were built in advance, which a file in its folder notes.
    Most programs come to no more than this look.
    """
    from torchlite_backends.device_runtime.core import program_cache

    return any(program_cache.program_folder(name).glob("*.built")) and load_engine(name).by_default


def report() -> list[tuple[str, str]]:
    """For each engine its name and a line: whether it serves, and why another one does not."""
    try:
        choice = select_engine()
    except RuntimeError as error:
        return [(VARIABLE, str(error))]
    lines = [(NUMPY, "serves" if choice.engine is None else "serves what the other one does not take")]
    for name in ENGINES:
        if choice.name == name and choice.engine is not None:
            lines.append((name, f"serves: {choice.engine.describe()}"))
            continue
        why = choice.missing.get(name) or _why_not(name)
        lines.append((name, f"absent: {why}" if why else f"ready, not chosen; {VARIABLE}={name} chooses it"))
    return lines
