"""Parts of a pipe for several workers."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from enum import IntEnum
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Kinds of workers among which a pipe is divided: first those of a lower number."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every nth item, for one of n workers; all items if there are no workers (functional name: ``sharding_filter``).

    Args:
        source_datapipe: The pipe of the items.
        sharding_group_filter: The kind of workers that it divides among. Default: all kinds.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(6)).sharding_filter()
        >>> pipe.apply_sharding(2, 1)
        >>> list(pipe)
        [1, 3, 5]
    """

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        """Returns True."""
        return True

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        """Sets the number of workers of a kind, and which of them reads this pipe.

        Args:
            num_of_instances: Number of workers.
            instance_id: Number of the worker that reads.
            sharding_group: The kind of workers. Default: ``SHARDING_PRIORITIES.DEFAULT``.

        Raises:
            ValueError: The worker's number is not less than their number.
            RuntimeError: The kind ``DEFAULT`` is mixed with others.
        """
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        if sharding_group == SHARDING_PRIORITIES.DEFAULT:
            if self.groups and SHARDING_PRIORITIES.DEFAULT not in self.groups:
                raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        elif SHARDING_PRIORITIES.DEFAULT in self.groups:
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id
        count, mine = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                size, place = self.groups[group]
                mine += count * place
                count *= size
        self.num_of_instances, self.instance_id = count, mine

    def __iter__(self) -> Iterator[Any]:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        if not isinstance(self.source_datapipe, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        whole, rest = divmod(len(self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
