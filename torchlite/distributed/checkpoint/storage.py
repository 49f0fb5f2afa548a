"""Interfaces of checkpoint storages: reader and writer."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from torchlite.futures import Future

from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Location of a written item."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Base class of storages that write; its methods are called in the order in which they stand.

    Example:
        >>> import torchlite.distributed.checkpoint as dcp
        >>> issubclass(dcp.FileSystemWriter, dcp.StorageWriter)
        True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Starts a save.

        Args:
            checkpoint_id: The checkpoint's id, such as a folder. Default: the current one.
        """

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Sets up the writer.

        Args:
            is_coordinator: Whether this rank is the coordinator.
            args: For subclasses.
            kwargs: For subclasses.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Adds the storage's values to this rank's plan, and returns it.

        Args:
            plan: The plan.
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Adds the storage's values to all plans, on the coordinator, and returns them.

        Args:
            plans: The plans.
        """

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's items.

        Args:
            plan: The rank's final plan.
            planner: The planner, which resolves the data.

        Returns:
            A future of a list of results.
        """

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the metadata, on the coordinator; the checkpoint is valid afterwards.

        Args:
            metadata: The metadata.
            results: The results of all ranks.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether this storage supports a checkpoint id.

        Args:
            checkpoint_id: The id.
        """

    def storage_meta(self) -> StorageMeta | None:
        """Return the storage's information about the checkpoint."""
        return None


class StorageReader(abc.ABC):
    """Base class of storages that read; its methods are called in the order in which they stand.

    Example:
        >>> import torchlite.distributed.checkpoint as dcp
        >>> issubclass(dcp.FileSystemReader, dcp.StorageReader)
        True
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Starts a load.

        Args:
            checkpoint_id: The checkpoint's id, such as a folder. Default: the current one.
        """

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns the checkpoint's metadata.

        Args:
            args: For subclasses.
            kwargs: For subclasses.
        """

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Sets up the reader.

        Args:
            metadata: The checkpoint's metadata.
            is_coordinator: Whether this rank is the coordinator.
            args: For subclasses.
            kwargs: For subclasses.
        """

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Adds the storage's values to this rank's plan, and returns it.

        Args:
            plan: The plan.
        """

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Adds the storage's values to all plans, on the coordinator, and returns them.

        Args:
            plans: The plans.
        """

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads this rank's items and passes them to the planner.

        Args:
            plan: The rank's final plan.
            planner: The planner.

        Returns:
            A future that is complete after the last item.
        """

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Returns whether this storage supports a checkpoint id.

        Args:
            checkpoint_id: The id.
        """
