"""Callbacks of script modules to higher layers: the compiler, the file format and graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _JitCallbacks:
    """Callbacks, registered by `torchlite.jit`; each loads its module at the first call."""

    compile_module: Callable[..., Any]  # _recursive.script_module
    save: Callable[..., None]
    to_bytes: Callable[..., bytes]
    graph_of: Callable[..., Any]
    module_handle: Callable[..., Any]


JIT_CALLBACKS = _JitCallbacks()
