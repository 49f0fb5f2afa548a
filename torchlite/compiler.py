"""What programs ask of PyTorch's compiler. Nothing is compiled here: functions run as they are written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "reset", "set_stance",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether a compiler reads the function that calls this: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a compiler reads the function that calls this: never."""
    return False


def is_exporting() -> bool:
    """Whether the function that calls this is being exported: never."""
    return False


def compile(*args: Any, **kwargs: Any) -> Any:
    """`torch.compile`."""
    from ._dynamo.eval_frame import compile as torch_compile

    return torch_compile(*args, **kwargs)


def reset() -> None:
    """Forget what was compiled: nothing is."""


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
        raise AssertionError(f"expected a function, but got {type(fn).__name__}")
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Have a compiler take a function (or each of a list) as it is: it is returned."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
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
    """The compilers that there are: none."""
    return []


def cudagraph_mark_step_begin() -> None:
    """Say that a step begins, for graphs that a compiler keeps: there are none."""


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Any], Any]:
    """A decorator of what a compiler reads in place of `original_fn`; Python calls the original."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)}")

    def decorator(traceable_fn: Any) -> Any:
        if not skip_signature_check:
            inspect.signature(traceable_fn)
        return traceable_fn

    return decorator


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function that a compiler need read but once: it is returned."""
    return fn if fn is not None else functools.partial(nested_compile_region, **options)


class set_stance:
    """How compiled functions act from here on, or within a `with`: they are never compiled, so every stance but
    "fail_on_recompile" and its kind is what they do.
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

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...
