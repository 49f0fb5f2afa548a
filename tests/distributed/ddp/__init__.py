"""DistributedDataParallel and what stands on it, in processes that each test starts itself."""
