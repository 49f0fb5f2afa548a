"""What PyTorch tries out for tensors over several processes."""

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
    """In this context an op of a DTensor takes plain tensors for replicated ones."""
    with ImplicitReplication():
        yield
