"""Modes and tensor subclasses that intercept ops below autograd, by their `torch.ops.aten` names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torchlite as torch
from torchlite._aten.torch_dispatch import DispatchMode
from torchlite._dispatch.interceptors import Interceptor, show_only_within, stack

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode"]


class TorchDispatchMode(DispatchMode):
    """Context manager: every op of this thread, also in backward, calls `__torch_dispatch__(func, types, args, kwargs)`
    of this object, below autograd and autocast. `func(*args, **kwargs)` in it calls the next mode below.

    `func` is an overload such as `torch.ops.aten.add.Tensor`. Ops that are composite in PyTorch appear as their parts.

    >>> import torchlite as torch
    >>> from torchlite.utils._python_dispatch import TorchDispatchMode
    >>> class Printing(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2, 2)
    >>> with Printing():
    ...     y = (x @ x + 1).exp()
    aten.mm.default
    aten.add.Tensor
    aten.exp.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class, to be entered."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return False: no mode here belongs to PyTorch's tracing infrastructure."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that passes every op on unchanged."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack() -> list[Interceptor]:
    """The modes of this thread, the innermost last."""
    return [item for item in stack.items if item.is_dispatch_mode]


def _get_current_dispatch_mode() -> Interceptor | None:
    """The innermost mode of this thread."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """True if a mode intercepts the ops of this thread: any, or only modes that are not infrastructure
    (`is_infra_mode`).
    """
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not getattr(mode, "is_infra_mode", bool)() for mode in modes)


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """True if a mode intercepts the ops of this thread."""
    return is_in_torch_dispatch_mode()


def _without_modes(*modes: Any) -> show_only_within:
    return show_only_within([item for item in stack.items if not any(item is mode for mode in modes)])


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Interceptor]]:
    """Without the dispatch modes of this thread, for a block."""
    modes = _get_current_dispatch_mode_stack()
    with _without_modes(*modes):
        yield modes


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Interceptor]:
    """Without the innermost mode, for a block."""
    mode = _get_current_dispatch_mode_stack()[-1]
    with _without_modes(mode):
        yield mode


def is_traceable_wrapper_subclass(t: object) -> bool:
    """True if a tensor's subclass defines `__tensor_flatten__`, which returns (names of inner tensors, context), and
    `__tensor_unflatten__`.
    """
    is_subclass = isinstance(t, torch.Tensor) and type(t) is not torch.Tensor
    return is_subclass and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """`is_traceable_wrapper_subclass` of a class."""
    return (
        issubclass(t, torch.Tensor)
        and t is not torch.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Rebuild a tensor of such a subclass from `callback(name, tensor)` of each inner tensor. RuntimeError if the size
    is not `outer_size`, by default the tensor's size.
    """
    size = tuple(t.size() if outer_size is None else outer_size)
    stride = tuple(t.stride() if outer_stride is None else outer_stride)
    names, context = t.__tensor_flatten__()
    made = type(t).__tensor_unflatten__({n: callback(n, getattr(t, n)) for n in names}, context, size, stride)
    if tuple(made.shape) != size:
        raise RuntimeError(f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, "
                           f"but got: {tuple(made.shape)}")  # fmt: skip
    return made


def return_and_correct_aliasing(func: Any, args: Sequence[Any], kwargs: Any, out: Any) -> Any:
    """Return the result of `__torch_dispatch__` for `out`, the output of `func`: the tensor that an in-place op writes
    to, else `out`. RuntimeError for an in-place op without that tensor.
    """
    writes = [a for a in func._schema.arguments if a.is_write]
    if not writes:
        return out
    by_position = dict(zip((a.name for a in func._schema.arguments), args, strict=False))
    found = [by_position.get(a.name, (kwargs or {}).get(a.name)) for a in writes]
    if any(t is None for t in found):
        raise RuntimeError(f"{func} writes to an argument that it was not given")
    return found[0] if len(found) == 1 else type(out)(found) if isinstance(out, (list, tuple)) else tuple(found)
