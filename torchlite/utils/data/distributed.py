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
    """Yields the indices that one of several processes loads.

    With n processes, process r yields the elements r, r + n, r + 2n, … of an order that all share. So that all yield as
    many, the order is continued from its beginning. Call `set_epoch` before each epoch; else the order is always the
    same.

    Args:
        dataset: A data set with a length.
        num_replicas: Number of processes. Default: that of the default process group.
        rank: Number of this process, from 0. Default: its rank in the default process group.
        shuffle: Whether the order is random. Default: ``True``.
        seed: Seed of the order, the same in all processes. Default: 0.
        drop_last: Whether to shorten the order to a multiple of ``num_replicas`` instead of continuing it. Default:
            ``False``.

    Raises:
        ValueError: ``rank`` is out of range; or a number is not given and there is no default process group.

    Example:
        >>> from torchlite.utils.data import DistributedSampler
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=0, shuffle=False))
        [0, 2, 4]
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False, drop_last=True))
        [1, 3]
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
        """Sets the epoch, which is added to the seed of the order.

        Args:
            epoch: Number of the epoch.
        """
        self.epoch = epoch


__dir__ = make_module_dir(globals())
