"""cuDNN, which the CUDA backend uses for convolution and attention if the extra `cudnn` is installed: availability and
switches.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from torchlite._settings.module_dir import make_module_dir

from .._settings.backend_flags import FLAGS
from ._flag_properties import Precision, SwitchModule, allow_mutation, make_flag_property, make_precision_property

if TYPE_CHECKING:  # the module is of the class _Cudnn
    enabled: bool
    benchmark: bool
    benchmark_limit: int | None
    deterministic: bool
    allow_tf32: bool
    fp32_precision: str
    conv: Precision
    rnn: Precision


def version() -> int | None:
    """Returns cuDNN's version, such as 91002, or None if it is not used.

    Example:
        >>> torch.backends.cudnn.version() is None or torch.backends.cudnn.version() > 0
        True
    """
    from .. import cuda
    from .._dispatch.backend_registry import backend_of

    asked = getattr(backend_of("cuda"), "cudnn_version", None) if cuda.is_available() else None
    return asked() if asked is not None else None


def is_available() -> bool:
    """Returns whether the CUDA backend found cuDNN.

    Example:
        >>> torch.backends.cudnn.is_available() in (True, False)
        True
    """
    return version() is not None


def is_acceptable(tensor: Any) -> bool:
    """Returns whether cuDNN can compute with a tensor: it is on CUDA, floating-point, and cuDNN is available and
    enabled.

    Args:
        tensor: A tensor.

    Example:
        >>> torch.backends.cudnn.is_acceptable(torch.ones(2, device="cpu"))
        False
    """
    return FLAGS.cudnn_enabled and tensor.is_cuda and tensor.is_floating_point() and is_available()


def set_flags(
    _enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"
) -> tuple:
    """Sets the flags that are given, and returns the previous values of all.

    Example:
        >>> before = torch.backends.cudnn.set_flags()
        >>> before[0] == torch.backends.cudnn.enabled
        True
    """
    module: Any = sys.modules[__name__]
    before = (
        module.enabled,
        module.benchmark,
        module.benchmark_limit,
        module.deterministic,
        module.allow_tf32,
        module.fp32_precision,
    )
    for name, value in (
        ("enabled", _enabled),
        ("benchmark", _benchmark),
        ("benchmark_limit", _benchmark_limit),
        ("deterministic", _deterministic),
        ("allow_tf32", _allow_tf32),
        ("fp32_precision", None if _fp32_precision == "none" else _fp32_precision),
    ):
        if value is not None:
            with allow_mutation():
                setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, fp32_precision="none"
):
    """Context manager that sets the switches of cuDNN.

    Args:
        enabled: Whether cuDNN may be used. Default: ``False``.
        benchmark: Whether its algorithms are timed, to take the fastest. Default: ``False``.
        benchmark_limit: Largest number of algorithms that are timed; 0 times all. Default: 10.
        deterministic: Whether only algorithms that give the same bits each time are used. Default: ``False``.
        allow_tf32: Whether float32 operands may be rounded to TF32. Default: ``True``.
        fp32_precision: ``"ieee"``, ``"tf32"`` or ``"none"``, which leaves it. Default: ``"none"``.

    Example:
        >>> import torchlite as torch
        >>> with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        ...     torch.backends.cudnn.benchmark
        True
        >>> torch.backends.cudnn.benchmark
        False
    """
    precisions = dict(FLAGS.precisions)
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before[:4])
        FLAGS.precisions.update(precisions)


class _Cudnn(SwitchModule):
    enabled = make_flag_property("cudnn_enabled", "set_enabled_cudnn", "Whether cuDNN may be used where it is there.")
    benchmark = make_flag_property(
        "cudnn_benchmark",
        "set_benchmark_cudnn",
        "Whether its ways of computing a convolution are timed, to take the fastest.",
    )
    deterministic = make_flag_property(
        "cudnn_deterministic",
        "set_deterministic_cudnn",
        "Whether only ways that give the same bits every time are taken.",
    )
    fp32_precision = make_precision_property(
        "cuda", "The precision of float32 in cuDNN where `conv` and `rnn` say nothing."
    )
    conv, rnn = Precision("conv"), Precision("rnn")

    @property
    def benchmark_limit(self) -> int | None:
        """The maximum number of algorithms that `benchmark` tries; 0: all."""
        return FLAGS.cudnn_benchmark_limit

    @benchmark_limit.setter
    def benchmark_limit(self, value: int | None) -> None:
        FLAGS.cudnn_benchmark_limit = value

    @property
    def allow_tf32(self) -> bool:
        """True if float32 operands of convolutions and recurrent layers may be rounded to TF32."""
        return FLAGS.tf32("conv") and FLAGS.tf32("rnn")

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cudnn expects a bool, but got {type(value).__name__}")
        for what in ("conv", "rnn"):
            FLAGS.set_precision(what, "tf32" if value else "none")


sys.modules[__name__].__class__ = _Cudnn


__dir__ = make_module_dir(globals())
