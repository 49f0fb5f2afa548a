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
    """Calls `torch.compile`.

    Args:
        *args: The function or module.
        **kwargs: Arguments of `torch.compile`.

    Returns:
        The compiled function or module.

    Example:
        >>> torch.compiler.compile(lambda x: 2 * x)(torch.ones(1))
        tensor([2.])
    """
    from .._dynamo.eval_frame import compile as torch_compile

    return torch_compile(*args, **kwargs)


def reset() -> None:
    """Discards all compiled code.

    Example:
        >>> torch.compiler.reset()
    """
    module = sys.modules.get("torchlite._dynamo.compiled_function")
    if module is not None:
        module.reset()


def wrap_numpy(fn: Any) -> Any:
    """Turns a function of NumPy arrays into a function of tensors.

    Args:
        fn: The function.

    Returns:
        A function whose tensors become arrays, and whose resulting arrays become tensors. It has no derivative.

    Example:
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
    """Returns the names of the backends of `torch.compile`.

    Args:
        exclude_tags: Tags of backends that are left out. Default: ``("debug", "experimental")``.

    Example:
        >>> torchlite.compiler.list_backends()
        ['inductor']
    """
    from .._dynamo.backends import list_backends as listed

    return listed(exclude_tags)


def cudagraph_mark_step_begin() -> None:
    """Marks the start of a step for CUDA graphs of a compiler, which has no effect.

    Example:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Marks a function that a compiler may compile once; it is returned unchanged.

    Args:
        fn: The function. Default: none, which returns a decorator.
        **options: No effect.

    Example:
        >>> @torch.compiler.nested_compile_region
        ... def double(x):
        ...     return 2 * x
        >>> double(4)
        8
    """
    return fn if fn is not None else functools.partial(nested_compile_region, **options)


load_cache_artifacts = unsupported_function("torch.compiler.load_cache_artifacts")
load_compiled_function = unsupported_function("torch.compiler.load_compiled_function")


def get_default_backend() -> Any:
    """Returns the default backend of `torch.compile`.

    Example:
        >>> torchlite.compiler.get_default_backend()
        'inductor'
    """
    return PROCESS_STATE.backend


def set_default_backend(backend: Any) -> None:
    """Sets the default backend of `torch.compile`.

    Args:
        backend: A name or a function; ``None`` restores the initial one.

    Raises:
        TypeError: ``backend`` is another object.

    Example:
        >>> torch.compiler.set_default_backend("eager")
        >>> torch.compiler.get_default_backend()
        'eager'
        >>> torch.compiler.set_default_backend(None)
    """
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    PROCESS_STATE.backend = "inductor" if backend is None else backend


def save_cache_artifacts() -> None:
    """Returns None: there are no compiled artifacts to load elsewhere.

    Example:
        >>> torch.compiler.save_cache_artifacts()
    """


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Stores whether processes agree on recompilation.

    Args:
        enabled: The setting.

    Returns:
        The old setting.

    Example:
        >>> before = torch.compiler.set_enable_guard_collectives(True)
        >>> torch.compiler.set_enable_guard_collectives(before)
        True
    """
    before, PROCESS_STATE.collectives = PROCESS_STATE.collectives, enabled
    return before


# Guard filters for `options` of `torch.compile`.


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Returns False for each guard: all are dropped.

    Args:
        guard_entries: List of guards.

    Example:
        >>> torch.compiler.skip_all_guards_unsafe([None, None])
        [False, False]
    """
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """Returns for each guard whether it is kept: all except those on global variables.

    Args:
        guard_entries: List of guards.

    Example:
        >>> from types import SimpleNamespace as Guard
        >>> torch.compiler.skip_guard_on_globals_unsafe([Guard(is_global=True), Guard(is_global=False)])
        [False, True]
    """
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Returns for each guard whether it is kept: all except those on the modules of `torch.nn`.

    Args:
        guard_entries: List of guards.

    Example:
        >>> torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe([])
        []
    """
    return [not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Returns for each guard whether it is kept: all except those on modules.

    Args:
        guard_entries: List of guards.

    Example:
        >>> torch.compiler.skip_guard_on_all_nn_modules_unsafe([])
        []
    """
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Returns for each guard whether it is kept: those on tensors.

    Args:
        guard_entries: List of guards.
        keep_parameters: Whether those on parameters are kept too. Default: ``False``.

    Example:
        >>> from types import SimpleNamespace as Guard
        >>> torch.compiler.keep_tensor_guards_unsafe([Guard(guard_type="TENSOR_MATCH", value=torch.ones(1))])
        [True]
    """
    from ..nn import Parameter

    return [
        entry.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(entry.value, Parameter))
        for entry in guard_entries
    ]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Returns for each guard whether it is kept: those on local tensors, shapes and modes, which do not need Python.

    Args:
        guard_entries: List of guards.

    Example:
        >>> from types import SimpleNamespace as Guard
        >>> torch.compiler.keep_portable_guards_unsafe([Guard(guard_type="SHAPE_ENV", is_global=False)])
        [True]
    """
    return [
        entry.guard_type in ("TENSOR_MATCH", "SHAPE_ENV", "GLOBAL_STATE") and not entry.is_global
        for entry in guard_entries
    ]


__dir__ = make_module_dir(globals())
