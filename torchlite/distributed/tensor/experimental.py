"""What PyTorch tries out for tensors over several processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .._absent import absent
from ._dispatch import Replicating

_HERE = "torch.distributed.tensor.experimental"

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]

context_parallel, local_map, register_sharding = (
    absent(name, _HERE) for name in ("context_parallel", "local_map", "register_sharding")
)


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """In this context an op of a DTensor takes plain tensors for replicated ones."""
    with Replicating():
        yield
