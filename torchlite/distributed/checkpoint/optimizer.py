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
    """Return `{optimizer_key: state}` from a checkpoint saved with such an entry.

    A tensor with a parameter's name in its path, and its size, becomes a DTensor if `model_state_dict` has one; others
    are full tensors. All ranks call it; `load` with the state dict of `get_optimizer_state_dict` does the same.
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
