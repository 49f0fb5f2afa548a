"""DistributedDataParallel, under PyTorch's module name."""

from ...distributed._ddp.distributed_data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
