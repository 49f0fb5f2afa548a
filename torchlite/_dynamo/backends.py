"""The compilers by name."""

from __future__ import annotations

import functools
from typing import Any

from .._settings.compiling import PROCESS
from .exc import InvalidBackend

# What `list_backends` names, and those that show what a program does without a compiler.
COMPILERS, DEBUGGERS = ("inductor",), ("eager", "aot_eager")


def frame_for(backend: Any, fullgraph: bool = False, limit: int | None = None, mode: str | None = None) -> Any:
    """What makes a compiled function of a function. InvalidBackend for a name that is none."""
    backend = PROCESS.backend if backend is None else backend
    if backend in ("eager", *_OF_OTHERS) or callable(backend):
        return lambda function: function
    if backend not in (*COMPILERS, *DEBUGGERS):
        raise InvalidBackend(backend)
    return functools.partial(_frame, fullgraph, limit, mode)


# Compilers of PyTorch's that torchlite lacks: functions run as they are written.
_OF_OTHERS = ("cudagraphs", "onnxrt", "openxla", "tvm", "aot_ts_nvfuser", "ipex")


def _frame(fullgraph: bool, limit: int | None, mode: str | None, function: Any) -> Any:
    from .frames import Frame
    from .trees import name_of

    return Frame(function, name_of(function), fullgraph, limit, mode)
