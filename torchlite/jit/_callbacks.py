"""Callbacks of script modules to the compiler, the file format and graphs, which stand on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _JitCallbacks:
    """Registered by `torchlite.jit`; each loads its module at the first call."""

    compile_module: Callable[..., Any]  # _recursive.script_module
    save: Callable[..., None]
    to_bytes: Callable[..., bytes]
    graph_of: Callable[..., Any]
    module_handle: Callable[..., Any]


JIT_CALLBACKS = _JitCallbacks()
