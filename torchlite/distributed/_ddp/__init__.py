"""DistributedDataParallel and its parts."""
