"""Checks of store methods' arguments: PyTorch's TypeErrors, before anything is sent or changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any


def wrong_type_error(call: str, expected: str, value: Any) -> TypeError:
    """Return the error for a value of another type."""
    return TypeError(f"{call}(): incompatible function arguments: {expected} is expected, not {type(value).__name__}")


def as_bytes(call: str, value: Any) -> bytes:
    """Return a name or a value as bytes, from str or bytes."""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise TypeError(f"{call}(): incompatible function arguments: {error}") from None
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise wrong_type_error(call, "a str or bytes", value)


def as_list(call: str, values: Any) -> list[bytes]:
    """Return names or values as a list, from a sequence of str or bytes other than str itself."""
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise wrong_type_error(call, "a list of str", values)
    return [as_bytes(call, value) for value in values]


def as_int(call: str, value: Any, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
    """Return an integer between bounds, by default those of 64 bits."""
    try:
        number = value.__index__()
    except AttributeError:
        raise wrong_type_error(call, "an int", value) from None
    if not low <= number <= high:
        raise TypeError(f"{call}(): incompatible function arguments: {number} is not between {low} and {high}")
    return number


def as_timedelta(call: str, value: Any) -> timedelta:
    """Return a duration from a timedelta, or seconds as a float."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, float):
        try:
            return timedelta(seconds=value)
        except (OverflowError, ValueError) as error:
            raise TypeError(f"{call}(): incompatible function arguments: {error}") from None
    raise wrong_type_error(call, "a datetime.timedelta", value)
