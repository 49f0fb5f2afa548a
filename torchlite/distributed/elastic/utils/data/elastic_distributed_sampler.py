"""A sampler that begins in an epoch's middle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torchlite as torch
from torchlite.utils.data import Dataset
from torchlite.utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """Sampler of a rank's part of the items from an index on, for a run that restarts in an epoch's middle.

    The items of an epoch have an order that all ranks draw from its number. Those before the index are left out. The
    rest is repeated from its beginning until all ranks have equally many.

    Args:
        dataset: The items.
        num_replicas: The number of ranks. Default: that of the default group.
        rank: The rank. Default: that of the default group.
        start_index: How many items were used. Default: 0.

    Raises:
        ValueError: The index is not below the number of items.

    Example:
        >>> from torchlite.distributed.elastic.utils.data import ElasticDistributedSampler
        >>> len(ElasticDistributedSampler(list(range(10)), num_replicas=2, rank=0, start_index=4))
        3
    """

    def __init__(
        self, dataset: Dataset[Any], num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ) -> None:
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if not 0 <= start_index < len(dataset):  # type: ignore[arg-type]
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")  # type: ignore[arg-type]
        self.start_index = start_index
        left = len(dataset) - start_index  # type: ignore[arg-type]
        self.num_samples = math.ceil(left / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        left = torch.randperm(len(self.dataset) - self.start_index, generator=generator).add(self.start_index).tolist()  # type: ignore[arg-type]
        repeated = (left * -(-self.total_size // len(left)))[: self.total_size]
        return iter(repeated[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
