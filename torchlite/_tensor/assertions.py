"""`torch._check` and its variants: raise an error if a condition does not hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._dispatch import call
from .._types.dtypes import bool_

_WORDS = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise ``error_type`` with the message ``message()`` unless ``cond`` holds. TypeError if ``cond`` is not a bool or
    ``message`` is not callable.
    """
    if hasattr(cond, "_assume"):  # a condition of a program that is captured, which asserts it
        cond = cond._assume()
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        raise error_type(_WORDS if message is None else str(message()))


def _assert_async(input: Any, assert_msg: str | None = None) -> None:
    """RuntimeError if a one-element tensor is zero."""
    if input.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if input.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """`_check_with` of all elements of a bool tensor."""
    if not isinstance(cond, call.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError unless ``cond`` holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """IndexError unless ``cond`` holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """ValueError unless ``cond`` holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """TypeError unless ``cond`` holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """NotImplementedError unless ``cond`` holds."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError unless all elements of a bool tensor are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """RuntimeError for a number below 0 or above ``max``."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious. \
    Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)
