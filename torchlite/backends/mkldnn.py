"""oneDNN, which the CPU's convolutions use if its library is installed: availability and switches."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from torchlite._settings.module_dir import make_module_dir

from .._settings.backend_flags import FLAGS
from ._flag_properties import Precision, SwitchModule, allow_mutation, make_flag_property, make_precision_property

if TYPE_CHECKING:  # the module is of the class _Mkldnn
    enabled: bool
    deterministic: bool
    allow_tf32: bool | None
    fp32_precision: str
    matmul: Precision
    conv: Precision
    rnn: Precision

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


def _library_or_reason() -> Any:
    """Return the oneDNN library of the CPU backend, or the reason why there is none."""
    from .._dispatch.backend_registry import backend_of

    return backend_of("cpu").onednn()


def is_available() -> bool:
    """Returns whether oneDNN was found; it then computes the CPU's convolutions while `enabled` is set.

    Example:
        >>> torch.backends.mkldnn.is_available() in (True, False)
        True
    """
    return _library_or_reason().library is not None


def is_acl_available() -> bool:
    """Returns False: a oneDNN build with the Arm Compute Library is not detected.

    Example:
        >>> torch.backends.mkldnn.is_acl_available()
        False
    """
    return False


class verbose:
    """Context manager in which oneDNN logs its primitives on the standard output.

    It has no effect where oneDNN is not installed.

    Args:
        level: ``VERBOSE_OFF``, ``VERBOSE_ON`` or ``VERBOSE_ON_CREATION``.

    Raises:
        RuntimeError: The level is another one.

    Example:
        >>> import torchlite as torch
        >>> with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_OFF):
        ...     _ = torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    """

    def __init__(self, level: int):
        self.level = level

    def __enter__(self):
        self._set(self.level)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self._set(VERBOSE_OFF)
        return False

    @staticmethod
    def _set(level: int) -> None:
        library = _library_or_reason().library
        if level not in (VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION):
            raise RuntimeError(f"mkldnn.verbose: a level from 0 to 2 is expected, but got {level}")
        if library is not None:
            library.call("set_verbose", level)


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none") -> tuple:
    """Sets the flags that are given, and returns the previous values of all.

    Example:
        >>> before = torch.backends.mkldnn.set_flags()
        >>> before[0] == torch.backends.mkldnn.enabled
        True
    """
    module: Any = sys.modules[__name__]
    before = module.enabled, module.deterministic, module.allow_tf32, module.fp32_precision
    for name, value in (
        ("enabled", _enabled),
        ("deterministic", _deterministic),
        ("allow_tf32", _allow_tf32),
        ("fp32_precision", None if _fp32_precision == "none" else _fp32_precision),
    ):
        if value is not None:
            with allow_mutation():
                setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Context manager that sets the switches of oneDNN.

    Args:
        enabled: Whether oneDNN may be used. Default: ``False``.
        deterministic: Stored; the results are the same bits each time in any case. Default: ``False``.
        allow_tf32: Stored; float32 is computed in float32. Default: ``True``.
        fp32_precision: Stored; float32 is computed in float32. Default: ``"none"``.

    Example:
        >>> import torchlite as torch
        >>> with torch.backends.mkldnn.flags(enabled=False):
        ...     torch.backends.mkldnn.enabled
        False
        >>> torch.backends.mkldnn.enabled
        True
    """
    precision = FLAGS.precisions["mkldnn"]
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        FLAGS.mkldnn_allow_tf32, FLAGS.precisions["mkldnn"] = before[2], precision
        set_flags(*before[:2])


class _Mkldnn(SwitchModule):
    enabled = make_flag_property(
        "mkldnn_enabled", "set_enabled_mkldnn", "Whether oneDNN may be used where it is there."
    )
    deterministic = make_flag_property(
        "mkldnn_deterministic",
        "set_deterministic_mkldnn",
        "Kept, and true in any case: the same bits come every time, whatever the number of threads.",
    )

    @property
    def allow_tf32(self) -> bool | None:
        """Stored without effect: float32 is computed in float32."""
        return FLAGS.mkldnn_allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"_set_onednn_allow_tf32 expects a bool, but got {type(value).__name__}")
        FLAGS.mkldnn_allow_tf32 = value

    fp32_precision = make_precision_property("mkldnn", "Stored without effect: float32 is computed in float32.")
    matmul, conv, rnn = (Precision(f"mkldnn_{what}") for what in ("matmul", "conv", "rnn"))


sys.modules[__name__].__class__ = _Mkldnn


__dir__ = make_module_dir(globals())
