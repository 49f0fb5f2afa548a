"""Loading of sharded optimizer state with the placements of the model's parameters."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.distributed.tensor import DTensor

from ._nested_dict import unflatten_state_dict
from .metadata import TensorStorageMetadata
from .planner import LoadPlanner
from .state_dict_loader import _load_state_dict
from .storage import StorageReader

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any],
    optimizer_key: str,
    storage_reader: StorageReader,
    planner: LoadPlanner | None = None,
) -> dict[str, Any]:
    """Loads an optimizer's state from a checkpoint, sharded as the model is. All ranks call it.

    A tensor whose path has a parameter's name, and whose size is the parameter's, becomes a DTensor if the parameter is
    one. Others are full tensors. `load` with the result of `get_optimizer_state_dict` does the same.

    Args:
        model_state_dict: The model's state dict.
        optimizer_key: The entry of the checkpoint.
        storage_reader: The reader.
        planner: The planner. Default: a `DefaultLoadPlanner`.

    Returns:
        A dictionary ``{optimizer_key: state}``.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        ...     _ = dcp.save({"optim": {"state": {"weight": torch.ones(2)}}}, checkpoint_id=folder)
        ...     model = {"weight": torch.zeros(2)}
        ...     dcp.load_sharded_optimizer_state_dict(model, "optim", dcp.FileSystemReader(folder))
        ...     torch.distributed.destroy_process_group()
        {'optim': {'state': {'weight': tensor([1., 1.])}}}
    """
    metadata = storage_reader.read_metadata()
    paths = {name: path for name, path in (metadata.planner_data or {}).items() if path[0] == optimizer_key}
    state: dict[str, Any] = {}
    for name, path in paths.items():
        stored = metadata.state_dict_metadata[name]
        like = next((model_state_dict[part] for part in path if part in model_state_dict), None)
        state[name] = _make_empty_tensor(stored, like) if isinstance(stored, TensorStorageMetadata) else "<bytes_io>"
    _load_state_dict(state, storage_reader, planner=planner)
    return unflatten_state_dict(state, paths)


def _make_empty_tensor(stored: TensorStorageMetadata, like: Any) -> torch.Tensor:
    dtype = stored.properties.dtype
    if not isinstance(like, DTensor) or like.size() != stored.size:
        return torch.empty(stored.size, dtype=dtype)
    local = like.to_local()
    return DTensor.from_local(
        torch.empty(local.shape, dtype=dtype, device=local.device), like.device_mesh, like.placements, run_check=False,
        shape=like.size(), stride=like.stride(),
    )  # fmt: skip
