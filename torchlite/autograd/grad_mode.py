"""Per-thread grad modes: context managers and decorators."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.autograd_graph import root_meta_of
from .._dispatch.dispatch_state import MODE, change_counters, set_grad_mode
from .._settings.generator_contexts import wrap_generator
from .._types.package_name import package_name

_entered: set[bool] = set()  # not empty once a thread was in inference mode


def _set_inference(on: bool) -> None:
    """Turn inference mode on or off in this thread.

    STALE_VIEW_CHECKS counts a thread while its mode is on, and never less: a signal's handler may run between the two
    steps.
    """
    if MODE.inference is on:
        return
    if not on:
        MODE.inference = False
        change_counters(STALE_VIEW_CHECKS=-1)
        return
    if not _entered:  # inference tensors may be written to later, so writes are checked from now on
        _entered.add(True)
        change_counters(WRITE_CHECKS=1)
    change_counters(STALE_VIEW_CHECKS=1)
    MODE.inference = True


def _set_modes(grad: bool, inference: bool) -> None:
    _set_inference(inference)
    MODE.asked = grad
    set_grad_mode(grad and not inference)


def _set_grad_enabled(mode: bool) -> None:
    """Turn the recording of gradients on or off in this thread, as captured graphs do."""
    set_grad_mode(mode)


_set_grad_enabled.__module__ = f"{package_name()}._C"  # where programs find it


class _DecoratorContextManager:
    """A context manager that also decorates functions, generators and classes."""

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def __call__(self, function):
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            cls: Any = function
            cls.__init__ = self(cls.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return wrap_generator(function, lambda: self.clone())

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return inside

    def clone(self):
        """A new instance, for one call of the decorated function."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Base class for decorators without arguments: `@name` is the same as `@name()`."""

    def __new__(cls, orig_func=None):
        made = object.__new__(cls)
        if orig_func is None:
            return made
        made.__init__()
        return made(orig_func)


class _ModeSetter(_DecoratorContextManager):
    """Sets grad mode for a block, a function or a generator."""

    def __init__(self):
        self.before: list = []

    def __exit__(self, *exc):
        _set_modes(*self.before.pop())

    def _set(self, grad: bool, inference: bool):
        self.before.append((is_grad_enabled(), MODE.inference))
        _set_modes(grad, inference)


class no_grad(_NoParamDecoratorContextManager, _ModeSetter):
    """Disables the recording of gradients in a block, a function or a generator, for this thread.

    Args:
        orig_func: The function to decorate; ``@torch.no_grad`` is the same as ``@torch.no_grad()``. Default: none.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.no_grad():
        ...     (x * 2).requires_grad
        False

    See also:
        `enable_grad`, `set_grad_enabled`, `inference_mode`.
    """

    def __init__(self, orig_func=None):
        super().__init__()

    def __enter__(self):
        self._set(False, MODE.inference)


class enable_grad(no_grad):
    """Enables the recording of gradients in a block, a function or a generator, also inside `no_grad`.

    Args:
        orig_func: The function to decorate. Default: none.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     (x * 2).requires_grad
        True
    """

    def __enter__(self):
        self._set(True, MODE.inference)


class inference_mode(_ModeSetter):
    """Disables recording as `no_grad` does, and makes tensors that can never be part of a graph.

    Such a tensor has no version counter to keep, and cannot be saved for backward later.

    Args:
        mode: Whether to turn inference mode on; ``False`` turns it off in a block inside it. Or a function to
            decorate. Default: ``True``.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.inference_mode():
        ...     y = x * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    def __new__(cls, mode=True):
        made = object.__new__(cls)
        if not isinstance(mode, bool) and callable(mode):
            made.__init__()
            return made(mode)
        return made

    def __init__(self, mode=True):
        super().__init__()
        self.mode = True if callable(mode) else bool(mode)

    def __enter__(self):
        self._set(not self.mode and (MODE.grad or MODE.inference), self.mode)

    def clone(self):
        return type(self)(self.mode)


class set_grad_enabled(_ModeSetter):
    """Turns the recording of gradients on or off: at once, and as a context manager until the block ends.

    Args:
        mode: Whether to record.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> training = False
        >>> with torch.set_grad_enabled(training):
        ...     (x * 2).requires_grad
        False
    """

    def __init__(self, mode: bool):
        super().__init__()
        if mode.__class__ is not bool:
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self._set(mode, MODE.inference)

    def __enter__(self):
        pass

    def __call__(self, function):
        self.__exit__()
        return super().__call__(function)

    def clone(self):
        return type(self)(self.mode)


class _AttributeSetter(_ModeSetter):
    """Sets an attribute of an object at once when called, and until the end of the block when used in `with`."""

    _owner: Any
    _name: str

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = mode
        self.before.append(getattr(self._owner, self._name))
        setattr(self._owner, self._name, mode)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        setattr(self._owner, self._name, self.before.pop())

    def clone(self):
        return type(self)(self.mode)


class _Threads(threading.local):
    enabled = True


_threads = _Threads()


class set_multithreading_enabled(_AttributeSetter):
    """Sets whether backward may use several threads: at once, or for a block.

    Backward uses another thread for deeply nested backward passes only.

    Args:
        mode: Whether it may.

    Example:
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     torch.autograd.is_multithreading_enabled()
        False
    """

    _owner, _name = _threads, "enabled"


def is_multithreading_enabled() -> bool:
    """Returns whether backward may use several threads; see `set_multithreading_enabled`."""
    return _threads.enabled


_is_multithreading_enabled = is_multithreading_enabled


def is_view_replay_enabled() -> bool:
    """Returns the last setting of `_force_original_view_tracking`."""
    return _force_original_view_tracking.replay


_is_view_replay_enabled = is_view_replay_enabled


class _force_original_view_tracking(_ModeSetter):
    """Set whether views are tracked by the ops that created them. torchlite always tracks them by memory layout, which
    gives the same gradients, so the setting has no effect.
    """

    replay = False

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = mode
        self.before.append(type(self).replay)
        _force_original_view_tracking.replay = mode

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _force_original_view_tracking.replay = self.before.pop()

    def clone(self):
        return type(self)(self.mode)


class enforce_grad_layout_policy(_AttributeSetter):
    """Sets whether a leaf's first gradient gets the leaf's memory layout: at once, or for a block.

    Args:
        enable: ``True``, the mode at the start, copies a gradient of another layout. ``False`` keeps its layout and
            saves the copy. Default: ``True``.

    Example:
        >>> x = torch.ones(3, 2).T.requires_grad_()
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     (x * torch.ones(2, 3)).sum().backward()
        >>> x.stride(), x.grad.stride()
        ((1, 2), (3, 1))
    """

    _owner, _name = MODE, "grad_layout_policy"

    def __init__(self, enable: bool = True):
        super().__init__(enable)
        self.enable = enable


class _set_fwd_grad_enabled(_AttributeSetter):
    """Set whether levels of forward mode propagate tangents: immediately when called, or for a `with` block."""

    _owner, _name = MODE, "forward"


class _unsafe_preserve_version_counter(_DecoratorContextManager):
    """Context manager in which writes to a tensor, or to those of a tuple, do not change the version counter, so nodes
    that saved them do not detect the write.
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if hasattr(tensors, "_tl_meta") else tuple(tensors)

    def __enter__(self):
        self.before = [(root, root.n) for root in map(root_meta_of, self.tensors)]

    def __exit__(self, *exc):
        for root, n in self.before:
            root.n = n
            (root.memory or root).others += 1

    def clone(self):
        return type(self)(self.tensors)


def _is_fwd_grad_enabled() -> bool:
    """True if levels of forward-mode differentiation send tangents along in this thread."""
    return MODE.forward


def is_grad_enabled() -> bool:
    """Returns whether ops are recorded in this thread.

    Inference mode records nothing; inside it the result is the value that was set last.

    Example:
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """
    return MODE.asked if MODE.inference else MODE.grad


def is_inference_mode_enabled() -> bool:
    """Returns whether this thread is in inference mode.

    Example:
        >>> with torch.inference_mode():
        ...     torch.is_inference_mode_enabled()
        True
    """
    return MODE.inference


__dir__ = make_module_dir(globals(), hidden="is_multithreading_enabled is_view_replay_enabled")
