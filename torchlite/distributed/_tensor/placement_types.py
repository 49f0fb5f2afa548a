"""`torch.distributed.tensor.placement_types` under an older path."""

from ..tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
