"""Conversion between `torch.save` files and distributed checkpoints."""

from __future__ import annotations

import os
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._local_shards import narrow_to_box
from torchlite.futures import Future

from .default_planner import DefaultLoadPlanner, _create_default_local_metadata, _EmptyStateDictLoadPlanner
from .filesystem import FileSystem, FileSystemReader, FileSystemWriter
from .metadata import Metadata
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a `torch.save` file on one rank, which sends its tensors to the others.

    Such a file has no metadata, so it goes with `DynamicMetaLoadPlanner`.

    Args:
        checkpoint_id: The file. Default: that of the load.
        coordinator_rank: The rank that reads. Default: 0.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> import tempfile
        >>> from torchlite.distributed import checkpoint
        >>> from torchlite.distributed.checkpoint import format_utils
        >>> state = {"weight": torch.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save({"weight": torch.ones(2)}, f"{folder}/model.pt")
        ...     reader = format_utils.BroadcastingTorchSaveReader(f"{folder}/model.pt")
        ...     planner = format_utils.DynamicMetaLoadPlanner()
        ...     checkpoint.load(state, storage_reader=reader, planner=planner)
        >>> state
        {'weight': tensor([1., 1.])}
        >>> dist.destroy_process_group()
    """

    def __init__(self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return Metadata({})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        state: Any = None
        if self.is_coordinator:
            state = torch.load(self.checkpoint_id, map_location="cpu", weights_only=True)  # type: ignore[arg-type]
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(f"Non-tensor value identified at {item.storage_index.fqn}. At this time "
                                   f"{type(self).__name__} only supports loading Tensors.")  # fmt: skip
            value = state[item.storage_index.fqn] if state is not None else None
            tensor = _broadcast_tensor(value, self.coordinator_rank)
            target = planner.resolve_tensor(item).detach()
            part = narrow_to_box(tensor, item.storage_offsets, item.lengths)
            if target.size() != part.size():
                raise AssertionError(f"req {item.storage_index} mismatch sizes, {target.size()} vs {part.size()}")
            target.copy_(part)
            planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id:
            self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return os.path.isfile(checkpoint_id)


def _broadcast_tensor(tensor: Any, source: int) -> torch.Tensor:
    """Broadcast the coordinator's tensor, one at a time."""
    if not dist.is_initialized():
        return tensor  # type: ignore[no-any-return]
    told: list[Any] = [None if tensor is None else (tensor.shape, tensor.dtype)]
    dist.broadcast_object_list(told, source)
    shape, dtype = told[0]
    held = torch.empty(shape, dtype=dtype) if tensor is None else tensor.detach().contiguous()
    dist.broadcast(held, source)
    return held


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Load planner that takes the metadata from the state dict to load into.

    Args:
        flatten_state_dict: As for `DefaultLoadPlanner`.
        flatten_sharded_tensors: As for `DefaultLoadPlanner`.
        allow_partial_load: As for `DefaultLoadPlanner`.

    Example:
        >>> from torchlite.distributed.checkpoint import DefaultLoadPlanner
        >>> from torchlite.distributed.checkpoint.format_utils import DynamicMetaLoadPlanner
        >>> issubclass(DynamicMetaLoadPlanner, DefaultLoadPlanner)
        True
    """

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        whole: dict[str, Any] = {}
        for name, value in self.state_dict.items():
            if not isinstance(value, torch.Tensor):
                raise RuntimeError(f"Non-tensor value identified at {name}. At this time {type(self).__name__} only "
                                   "supports loading Tensors.")  # fmt: skip
            whole[name] = torch.empty(value.shape, dtype=value.dtype, device="meta")
        self.metadata = _create_default_local_metadata(whole)


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Converts a checkpoint to a `torch.save` file, in one process.

    Args:
        dcp_checkpoint_dir: The checkpoint's folder.
        torch_save_path: The name of the file.

    Raises:
        CheckpointException: The checkpoint cannot be read.

    Example:
        >>> import tempfile
        >>> from torchlite.distributed import checkpoint
        >>> from torchlite.distributed.checkpoint import format_utils
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = checkpoint.save({"weight": torch.ones(2)}, checkpoint_id=f"{folder}/parts", no_dist=True)
        ...     format_utils.dcp_to_torch_save(f"{folder}/parts", f"{folder}/model.pt")
        ...     torch.load(f"{folder}/model.pt")
        {'weight': tensor([1., 1.])}
    """
    state: dict[str, Any] = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), None, 0, True, _EmptyStateDictLoadPlanner())
    torch.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Converts a `torch.save` file to a checkpoint, in one process. No code of the file runs.

    Args:
        torch_save_path: The name of the file.
        dcp_checkpoint_dir: The checkpoint's folder.

    Raises:
        RuntimeError: No checkpoint can be written to the folder.

    Example:
        >>> import tempfile
        >>> from torchlite.distributed.checkpoint import format_utils
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.save({"weight": torch.ones(2)}, f"{folder}/one.pt")
        ...     format_utils.torch_save_to_dcp(f"{folder}/one.pt", f"{folder}/parts")
        ...     format_utils.dcp_to_torch_save(f"{folder}/parts", f"{folder}/two.pt")
        ...     torch.load(f"{folder}/two.pt")
        {'weight': tensor([1., 1.])}
    """
    state = torch.load(torch_save_path, map_location="cpu", weights_only=True)
    if not FileSystem.validate_checkpoint_id(dcp_checkpoint_dir):
        raise RuntimeError(f"no checkpoint can be written to {str(dcp_checkpoint_dir)!r}")
    _save_state_dict(state, FileSystemWriter(dcp_checkpoint_dir), None, 0, True)
