"""DistributedDataParallel, under PyTorch's name of its module."""

from ...distributed._ddp.distributed_data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
