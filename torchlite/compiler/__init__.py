"""What programs ask of PyTorch's compiler. Functions run as they are written, but for what an export records, and what
`torch.compile` has captured (`torchlite._dynamo`)."""

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
    """While entered, programs that ask are told that this thread exports them."""
    _STATE.exports += 1
    try:
        yield
    finally:
        _STATE.exports -= 1


def is_compiling() -> bool:
    """Whether a compiler or an export reads the function that calls this.

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
    """Whether `torch.compile` reads the function that calls this: while it records a call."""
    return _STATE.captures > 0


def is_exporting() -> bool:
    """Whether the function that calls this is being exported."""
    return _STATE.exports > 0


def compile(*args: Any, **kwargs: Any) -> Any:
    """`torch.compile`."""
    from .._dynamo.eval_frame import compile as torch_compile

    return torch_compile(*args, **kwargs)


def reset() -> None:
    """Forget what was compiled."""
    frames = sys.modules.get("torchlite._dynamo.compiled_function")
    for frame in list(frames.FRAMES) if frames is not None else ():
        frame.reset()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keep the compiler from a function (or class): it is returned as it is. Without `fn` a decorator.

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
    """Have a compiler take a function (or each of a list) for one that computes and does nothing else, whatever is in
    it: it is returned. AssertionError for what is no function.
    """
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
    """Have a compiler take what a function returned once as what it returns always: the function is returned."""
    fn._dynamo_marked_constant = True
    return fn


def wrap_numpy(fn: Any) -> Any:
    """A function of NumPy's arrays as one of tensors.

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
    """The names of the compilers that there are; those that only show what a program does where no tag excludes them.

    >>> torchlite.compiler.list_backends()
    ['inductor']
    """
    from .._dynamo.backends import list_backends as listed

    return listed(exclude_tags)


def cudagraph_mark_step_begin() -> None:
    """Say that a step begins, for graphs that a compiler keeps: there are none."""


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """A decorator of what a compiler reads in place of `original_fn`. Calls are captured while they run, so the
    original is called; that it has such a form says that it computes and does nothing else. TypeError for what is no
    function, and where the parameters are others. `can_constant_fold_through` and `is_embedded_type` have no effect: no
    bytecode is read.
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
    """Mark a function that a compiler need read but once: it is returned."""
    return fn if fn is not None else functools.partial(nested_compile_region, **options)


class set_stance:
    """How compiled functions act in this thread from here on, or within a `with` or a function that this decorates:
    with "force_eager" as they are written; with the others they are captured and replayed. `skip_guard_eval_unsafe` has
    no effect: guards are always evaluated.
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
    """The compiler that `torch.compile` is told of where it is told none.

    >>> torchlite.compiler.get_default_backend()
    'inductor'
    """
    return PROCESS_STATE.backend


def set_default_backend(backend: Any) -> None:
    """Name the compiler (or a function) that `torch.compile` is told of where it is told none; None: the first one.
    TypeError for anything else.
    """
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    PROCESS_STATE.backend = "inductor" if backend is None else backend


def save_cache_artifacts() -> None:
    """What was compiled, to be loaded elsewhere: nothing was, which is None."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Say whether processes agree before one compiles again, and get what was said before."""
    before, PROCESS_STATE.collectives = PROCESS_STATE.collectives, enabled
    return before


# What a compiler keeps of the conditions ("guards") under which what it made holds, for `options` of `torch.compile`.


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Of each guard whether to keep it: no."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """Of each guard whether to keep it: all but those of global variables."""
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Of each guard whether to keep it: all but those of PyTorch's own modules."""
    return [not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Of each guard whether to keep it: all but those of modules."""
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Of each guard whether to keep it: those of tensors, parameters only where told."""
    from ..nn import Parameter

    return [
        entry.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(entry.value, Parameter))
        for entry in guard_entries
    ]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Of each guard whether to keep it: those that do not need Python, of local tensors, shapes and modes."""
    return [
        entry.guard_type in ("TENSOR_MATCH", "SHAPE_ENV", "GLOBAL_STATE") and not entry.is_global
        for entry in guard_entries
    ]
