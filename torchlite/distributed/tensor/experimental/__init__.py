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
    """Lets ops of DTensors treat plain tensors as replicated, in a block.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.tensor import Shard, distribute_tensor
        >>> from torchlite.distributed.tensor.experimental import implicit_replication
        >>> x = distribute_tensor(torch.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> with implicit_replication():
        ...     (x + torch.ones(2)).full_tensor()
        tensor([2., 2.])
        >>> dist.destroy_process_group()
    """
    with ImplicitReplication():
        yield
