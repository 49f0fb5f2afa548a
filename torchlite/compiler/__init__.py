"""`torch.compiler`: compile, disable, is_compiling, set_stance and other controls of `torch.compile`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._settings.compiler_directives import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
    set_stance,
    substitute_in_graph,
)
from .._settings.compiler_state import PROCESS_STATE
from .._types.unsupported import unsupported_function
from . import config as config

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "load_compiled_function",
    "nested_compile_region", "reset", "save_cache_artifacts",
    "set_default_backend", "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def compile(*args: Any, **kwargs: Any) -> Any:
    """Call `torch.compile`."""
    from .._dynamo.eval_frame import compile as torch_compile

    return torch_compile(*args, **kwargs)


def reset() -> None:
    """Discard all compiled code."""
    module = sys.modules.get("torchlite._dynamo.compiled_function")
    if module is not None:
        module.reset()


def wrap_numpy(fn: Any) -> Any:
    """Wrap a function of NumPy arrays as a function of tensors.

    >>> import numpy as np
    >>> torchlite.compiler.wrap_numpy(np.tanh)(torchlite.zeros(2))
    tensor([0., 0.])
    """
    import numpy as np

    import torchlite as torch
    from torchlite.utils._pytree import tree_map

    def to_numpy(x: Any) -> Any:
        return x.detach().numpy() if isinstance(x, torch.Tensor) else x

    def to_tensor(x: Any) -> Any:
        return torch.as_tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(to_numpy, (args, kwargs))
        return tree_map(to_tensor, fn(*args, **kwargs))

    return wrapped


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the available backends. Debugging backends are listed if no tag excludes them.

    >>> torchlite.compiler.list_backends()
    ['inductor']
    """
    from .._dynamo.backends import list_backends as listed

    return listed(exclude_tags)


def cudagraph_mark_step_begin() -> None:
    """Mark the start of a step for CUDA graphs of a compiler; has no effect."""


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function as compiled once; returns it unchanged."""
    return fn if fn is not None else functools.partial(nested_compile_region, **options)


load_cache_artifacts = unsupported_function("torch.compiler.load_cache_artifacts")
load_compiled_function = unsupported_function("torch.compiler.load_compiled_function")


def get_default_backend() -> Any:
    """Return the default backend of `torch.compile`.

    >>> torchlite.compiler.get_default_backend()
    'inductor'
    """
    return PROCESS_STATE.backend


def set_default_backend(backend: Any) -> None:
    """Set the default backend of `torch.compile`, a name or a function; None restores the initial one. Raise TypeError
    for other values.
    """
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    PROCESS_STATE.backend = "inductor" if backend is None else backend


def save_cache_artifacts() -> None:
    """Return the compiled artifacts to load elsewhere: None, as there are none."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Set whether processes agree on recompilation, and return the old setting."""
    before, PROCESS_STATE.collectives = PROCESS_STATE.collectives, enabled
    return before


# Guard filters for `options` of `torch.compile`.


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Return False for each guard: drop all."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """Return for each guard if it is kept: all except those on global variables."""
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Return for each guard if it is kept: all except those on PyTorch's own modules."""
    return [not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Return for each guard if it is kept: all except those on modules."""
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Return for each guard if it is kept: those on tensors, on parameters only with `keep_parameters`."""
    from ..nn import Parameter

    return [
        entry.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(entry.value, Parameter))
        for entry in guard_entries
    ]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Return for each guard if it is kept: those on local tensors, shapes and modes, which do not need Python."""
    return [
        entry.guard_type in ("TENSOR_MATCH", "SHAPE_ENV", "GLOBAL_STATE") and not entry.is_global
        for entry in guard_entries
    ]


__dir__ = make_module_dir(globals())
