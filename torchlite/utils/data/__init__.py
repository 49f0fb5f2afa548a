"""Data sets, samplers and the DataLoader."""

from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader
from .datapipes._decorator import argument_validation, guaranteed_datapipes_determinism, non_deterministic
from .datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe, functional_datapipe
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk", "DataLoader", "Dataset",
    "DistributedSampler", "IterDataPipe", "IterableDataset", "MapDataPipe", "functional_datapipe",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "argument_validation", "default_collate", "default_convert", "get_worker_info",
    "guaranteed_datapipes_determinism", "non_deterministic", "random_split",
]  # fmt: skip
