"""BodyModule: a control flow body of a loaded ONNX model."""

from __future__ import annotations

import threading
from typing import Any

from .._settings.fork_locks import acquire_before_fork
from ._loaded_module import LoadedModule

_compiling = acquire_before_fork(threading.RLock())


class BodyModule(LoadedModule):
    """A LoadedModule whose code is generated when it is called first.

    Models have branches that a program never takes. Without this class each body would also be compiled once more with
    every body around it.
    """

    def recompile(self) -> None:
        """Have the code generated anew at the next call. A graph that is interpreted needs none."""
        if self._is_compiled():
            type(self).forward = _compile_and_call
        else:
            super().recompile()

    def _generate_waiting_code(self) -> None:
        with _compiling:  # of threads that call it at once, the first one
            if type(self).forward is _compile_and_call:
                super().recompile()

    @property
    def code(self) -> str:
        """Return the Python code of `forward`."""
        self._generate_waiting_code()
        return super().code

    def __str__(self) -> str:
        self._generate_waiting_code()
        return super().__str__()


def _compile_and_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    self._generate_waiting_code()
    return self.forward(*args, **kwargs)
