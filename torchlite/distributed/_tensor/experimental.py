"""`torch.distributed.tensor.experimental` by its older name."""

from ..tensor.experimental import context_parallel, implicit_replication, local_map, register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
