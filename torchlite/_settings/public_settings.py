"""torch's functions that set and get threads, determinism, precision and warnings."""

from __future__ import annotations

import warnings

from . import thread_count
from .backend_flags import FLAGS


def set_num_threads(n: int) -> None:
    """Set the number of threads of CPU kernels, and of NumPy's BLAS if its library supports that."""
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    thread_count.set_threads(int(n))


def get_num_threads() -> int:
    """Number of threads of CPU kernels."""
    return thread_count.get_threads()


def set_num_interop_threads(n: int) -> None:
    """Accepted for compatibility: ops of one program run in the thread that calls them."""
    FLAGS.interop_threads = n


def get_num_interop_threads() -> int:
    """The value that `set_num_interop_threads` set."""
    return FLAGS.interop_threads


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Say that results must not vary between runs. CPU kernels are deterministic anyway; device kernels ask this
    switch.
    """
    FLAGS.deterministic, FLAGS.deterministic_warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """True if `use_deterministic_algorithms` is on."""
    return FLAGS.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True if deterministic mode only warns."""
    return FLAGS.deterministic_warn_only


def get_deterministic_debug_mode() -> int:
    """0 off, 1 warns, 2 raises."""
    return 0 if not FLAGS.deterministic else 1 if FLAGS.deterministic_warn_only else 2


def set_deterministic_debug_mode(debug_mode) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    level = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)
    if level not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
        )
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium"."""
    return FLAGS.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products on devices that offer a choice: "high" and "medium" use TF32 on
    CUDA. Warns of other values.
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call "
            "has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    FLAGS.set_precision("matmul", "ieee" if precision == "highest" else "tf32")
    FLAGS.matmul_precision = precision


def set_flush_denormal(mode: bool) -> bool:
    """False: NumPy offers no such switch, denormals stay."""
    return False


def set_warn_always(b: bool) -> None:
    """Set whether one-time warnings are repeated at every occurrence."""
    FLAGS.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """True if `set_warn_always` is on."""
    return FLAGS.warn_always
