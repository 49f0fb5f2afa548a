"""One warning per process: an op would be faster with compiled kernels, and how to get them.

Only kernels for large arrays are wrapped, and only where NumPy computes because nothing else is installed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._types.dtypes import bfloat16
from torchlite_backends.device_runtime.core.processor_level import HOW_TO_GET_KERNELS

from .kernel_overrides import COST_TABLE, EXPENSIVE, MODERATE

VARIABLE = "TORCHLITE_KERNEL_HINT"
# Elements of an op that NumPy computes in several passes, and multiplications of a convolution: some milliseconds.
_MIN_SIZE, _MIN_MULTIPLICATIONS = 1 << 20, 1 << 26
_CONVOLUTION = "convolution"
_CONVOLVED = np.dtype("f4"), np.dtype("f2"), bfloat16.np


def is_wanted() -> bool:
    """True unless the user named an engine or silenced the hint."""
    from .engine_selection import requested_engines

    return not requested_engines() and os.environ.get(VARIABLE, "1") != "0"


def with_hints(kernels: dict[str, Callable], with_convolutions: Callable[[], bool]) -> dict[str, Callable]:
    """Return {op name: kernel} for the kernels that compiled ones surpass. The first one on a large array warns.

    with_convolutions: whether convolutions are among them, asked at a large one.
    """
    found = {}
    for name, costs in COST_TABLE.items():
        dtypes = {dtype for dtype, cost in costs.items() if cost in (MODERATE, EXPENSIVE)}
        if name in kernels and dtypes:
            found[name] = _with_hint(name, kernels[name], functools.partial(_is_large, dtypes))
    if _CONVOLUTION in kernels:
        found[_CONVOLUTION] = _with_hint(
            _CONVOLUTION, kernels[_CONVOLUTION], functools.partial(_is_large_convolution, with_convolutions)
        )
    return found


def _with_hint(name: str, kernel: Callable, is_slow: Callable[[tuple], bool]) -> Callable:
    @functools.wraps(kernel)
    def hinted(*args: Any, **options: Any) -> Any:
        if not _said and is_slow(args):
            _say(name.strip("_"))
        return kernel(*args, **options)

    return hinted


def _is_large(dtypes: set[np.dtype], args: tuple) -> bool:
    first = args[0]
    return first.__class__ is np.ndarray and first.size >= _MIN_SIZE and first.dtype in dtypes


def _is_large_convolution(wanted: Callable[[], bool], args: tuple) -> bool:
    """True for one or two dimensions and kernels of several positions, which compiled kernels compute in float32."""
    x, weight, *_ = args
    if x.dtype not in _CONVOLVED or x.ndim > 4 or math.prod(weight.shape[2:]) == 1:
        return False
    return x.size // max(x.shape[1], 1) * weight.size >= _MIN_MULTIPLICATIONS and wanted()


_said = False


def _say(name: str) -> None:
    """Warn of the op at the program's line. A filter that makes warnings errors does not break the op."""
    global _said
    _said = True
    from torchlite._dispatch.fallback import level_of_the_program
    from torchlite._settings.slow_kernels import SlowKernelWarning

    with contextlib.suppress(SlowKernelWarning):
        warnings.warn(
            f"{name} of a large tensor runs on NumPy's kernels; compiled kernels take less time: {HOW_TO_GET_KERNELS} "
            f"({VARIABLE}=0 hides this)",
            SlowKernelWarning,
            stacklevel=level_of_the_program(),
        )
