"""torch's functions that set and get threads, determinism, precision and warnings."""

from __future__ import annotations

import numbers
import warnings

from . import thread_count
from .backend_flags import FLAGS


def _refuse_other_numbers(function: str, n: object) -> None:
    if isinstance(n, bool) or not isinstance(n, numbers.Integral):
        raise RuntimeError(f"{function} expects an int, but got {type(n).__name__}")


def set_num_threads(n: int) -> None:
    """Sets the number of threads of CPU kernels, and of NumPy's BLAS if its library supports that.

    Args:
        n: Number of threads, at least 1.

    Raises:
        RuntimeError: ``n`` is not a positive integer.

    Example:
        >>> before = torch.get_num_threads()
        >>> torch.set_num_threads(1)
        >>> torch.get_num_threads()
        1
        >>> torch.set_num_threads(before)
    """
    _refuse_other_numbers("set_num_threads", n)
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    thread_count.set_threads(int(n))


def get_num_threads() -> int:
    """Returns the number of threads of CPU kernels.

    Example:
        >>> torch.get_num_threads() >= 1
        True
    """
    return thread_count.get_threads()


def set_num_interop_threads(n: int) -> None:
    """Stores a number of threads, which has no effect: ops of one program run in the thread that calls them.

    Args:
        n: The number that `get_num_interop_threads` returns, at least 1.

    Raises:
        RuntimeError: ``n`` is not a positive integer.

    Example:
        >>> before = torch.get_num_interop_threads()
        >>> torch.set_num_interop_threads(2)
        >>> torch.get_num_interop_threads()
        2
        >>> torch.set_num_interop_threads(before)
    """
    _refuse_other_numbers("set_num_interop_threads", n)
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    FLAGS.interop_threads = n


def get_num_interop_threads() -> int:
    """Returns the value that `set_num_interop_threads` set.

    Example:
        >>> torch.get_num_interop_threads() >= 1
        True
    """
    return FLAGS.interop_threads


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Sets whether the same program must give the same results in each run.

    CPU kernels are deterministic in any case. Kernels of devices read this setting.

    Args:
        mode: Whether results must not vary.
        warn_only: Whether an op without a deterministic kernel warns instead of raising. Default: ``False``.

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    for place, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument {place} must be bool, not {kind}")
    FLAGS.deterministic, FLAGS.deterministic_warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Returns whether `use_deterministic_algorithms` is on.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return FLAGS.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns whether deterministic mode only warns.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return FLAGS.deterministic_warn_only


def get_deterministic_debug_mode() -> int:
    """Returns the deterministic mode as a number: 0 off, 1 warns, 2 raises.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return 0 if not FLAGS.deterministic else 1 if FLAGS.deterministic_warn_only else 2


def set_deterministic_debug_mode(debug_mode) -> None:
    """Sets the deterministic mode by a number or a word.

    Args:
        debug_mode: 0 or ``"default"`` (off), 1 or ``"warn"``, 2 or ``"error"``.

    Raises:
        RuntimeError: The value is none of these.

    Example:
        >>> torch.set_deterministic_debug_mode("warn")
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        True
        >>> torch.set_deterministic_debug_mode("default")
    """
    level = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)
    if level not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
        )
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_float32_matmul_precision() -> str:
    """Returns the precision of float32 matrix products: "highest", "high" or "medium".

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return FLAGS.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of float32 matrix products on devices that offer a choice.

    On CUDA, ``"high"`` and ``"medium"`` use TF32. The CPU always computes in float32. A warning is given for another
    word, which has no effect.

    Args:
        precision: ``"highest"`` (float32), ``"high"`` or ``"medium"``.

    Example:
        >>> torch.set_float32_matmul_precision("high")
        >>> torch.get_float32_matmul_precision()
        'high'
        >>> torch.set_float32_matmul_precision("highest")
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
    FLAGS.set_precision("mkldnn_matmul", {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision])
    FLAGS.matmul_precision = precision


def set_flush_denormal(mode: bool, /) -> bool:
    """Returns False: NumPy has no switch that flushes denormal numbers to zero, so they stay.

    Args:
        mode: No effect.

    Example:
        >>> torch.set_flush_denormal(True)
        False
    """
    return False


def set_warn_always(b: bool) -> None:
    """Sets whether warnings that are given once are repeated at each occurrence.

    Args:
        b: Whether they are repeated.

    Example:
        >>> torch.set_warn_always(True)
        >>> torch.is_warn_always_enabled()
        True
        >>> torch.set_warn_always(False)
    """
    FLAGS.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """Returns whether `set_warn_always` is on.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """
    return FLAGS.warn_always
