"""`torch.compiler`: compile, disable, is_compiling, set_stance and other controls of `torch.compile`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from .._settings.compiler_state import PROCESS_STATE
from .._settings.compiler_state import THREAD_STATE as _STATE
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


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Context manager under which `is_exporting()` is True in this thread."""
    _STATE.exports += 1
    try:
        yield
    finally:
        _STATE.exports -= 1


def is_compiling() -> bool:
    """True if a compiler or an export captures the calling function.

    >>> @torchlite.compile
    ... def f(x):
    ...     if not torchlite.compiler.is_compiling():
    ...         print("as it is written")
    ...     return x + 1
    >>> f(torchlite.ones(1))
    tensor([2.])
    """
    return _STATE.exports > 0 or _STATE.captures > 0


def is_dynamo_compiling() -> bool:
    """True if `torch.compile` captures the calling function."""
    return _STATE.captures > 0


def is_exporting() -> bool:
    """True if the calling function is being exported."""
    return _STATE.exports > 0


def compile(*args: Any, **kwargs: Any) -> Any:
    """Call `torch.compile`."""
    from .._dynamo.eval_frame import compile as torch_compile

    return torch_compile(*args, **kwargs)


def reset() -> None:
    """Discard all compiled code."""
    frames = sys.modules.get("torchlite._dynamo.compiled_function")
    for frame in list(frames.FRAMES) if frames is not None else ():
        frame.reset()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Exclude a function or class from compilation and return it unchanged. Without `fn`, return a decorator.

    >>> @torchlite.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if not callable(fn):
        raise AssertionError("fn must be callable")
    if recursive and isinstance(fn, types.FunctionType):
        fn._torchdynamo_disable, fn._torchdynamo_disable_msg = True, reason  # type: ignore[attr-defined]
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Declare that a function (or each of a list) is pure, and return it. Raise AssertionError for a non-function."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    if isinstance(fn, types.FunctionType):
        fn._torchlite_allowed = True  # type: ignore[attr-defined]
    else:
        PROCESS_STATE.allowed[id(fn)] = fn
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Declare that a function always returns the same value, and return it."""
    fn._dynamo_marked_constant = True
    return fn


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


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """Return a decorator for a replacement that a compiler would trace instead of `original_fn`. Captures run the
    original; the replacement marks it as pure. Raise TypeError for a non-function and for different parameters.

    `can_constant_fold_through` and `is_embedded_type` have no effect: no bytecode is read.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)}")

    def decorator(traceable_fn: Any) -> Any:
        if not skip_signature_check:
            both = [inspect.signature(f) for f in (original_fn, traceable_fn)]
            names = [[(p.name, p.kind, p.default) for p in one.parameters.values()] for one in both]
            if names[0] != names[1]:
                raise TypeError(f"Signature mismatch between {original_fn} and {traceable_fn}: {both[0]} != {both[1]}")
        allow_in_graph(original_fn)
        return traceable_fn

    return decorator


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function as compiled once; returns it unchanged."""
    return fn if fn is not None else functools.partial(nested_compile_region, **options)


class set_stance:
    """Set how compiled functions run in this thread; a call, context manager or decorator. "force_eager" runs functions
    eagerly; other stances capture and replay them.

    `skip_guard_eval_unsafe` has no effect: guards are always evaluated.
    """

    _STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                "fail_on_recompile")  # fmt: skip

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance, self.before = stance, _STATE.stance
        _STATE.stance = stance

    def __call__(self, fn: Any) -> Any:
        _STATE.stance = self.before

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return run

    def __enter__(self) -> None:
        _STATE.stance = self.stance

    def __exit__(self, *error: Any) -> None:
        _STATE.stance = self.before


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
