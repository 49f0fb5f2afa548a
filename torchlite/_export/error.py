"""Errors of passes over exported graphs."""

from __future__ import annotations


class InternalError(Exception):
    """A graph is not as a pass expects it."""


def internal_assert(pred: bool, assert_msg: str) -> None:
    """Raise `InternalError` with a message unless a condition holds.

    >>> from torchlite._export.error import internal_assert
    >>> internal_assert(True, "never seen")
    """
    if not pred:
        raise InternalError(assert_msg)
