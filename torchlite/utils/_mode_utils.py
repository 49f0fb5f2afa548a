"""Modes that agree, and a block in which no mode sees an op."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

from torchlite._dispatch.interceptors import show_only_within

T = TypeVar("T")


def all_same_mode(modes: Any) -> bool:
    """Return whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """A block in which ops of this thread come to no mode."""
    with show_only_within([]):
        yield
