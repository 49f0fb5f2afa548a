"""Experimental DTensor functions: local_map, register_sharding, implicit_replication."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._dispatch import ImplicitReplication
from ._attention import context_parallel
from ._func_map import local_map
from ._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Context manager: ops of DTensors treat plain tensors as replicated."""
    with ImplicitReplication():
        yield
