"""DistributedSampler: the part of a data set that one of several processes visits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._settings.module_dir import make_module_dir

from .dataset import Dataset
from .sampler import Item, Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator


class DistributedSampler(Sampler[Item]):
    """Each of `num_replicas` processes visits every `num_replicas`-th index, beginning at its `rank`; padded to equal
    lengths.

    Call `set_epoch(epoch)` before each epoch, else the order is the same in all. Both numbers default to those of the
    default process group.
    """

    def __init__(
        self: DistributedSampler[int],
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = CALLBACKS.get_world_size() if num_replicas is None else num_replicas
        rank = CALLBACKS.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.shuffle, self.seed, self.drop_last = (
            dataset,
            num_replicas,
            rank,
            shuffle,
            seed,
            drop_last,
        )
        self.epoch = 0
        count = len(dataset)  # type: ignore[arg-type]
        if drop_last and count % num_replicas:
            self.num_samples = math.ceil((count - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[Any]:
        count = len(self.dataset)  # type: ignore[arg-type]
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = torch.randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        if not self.drop_last and len(order) < self.total_size:
            order = order * math.ceil(self.total_size / len(order))
        return iter(order[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which with the seed decides the order."""
        self.epoch = epoch


__dir__ = make_module_dir(globals())
