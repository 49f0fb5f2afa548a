"""Weights without a program: safetensors, and what `torch.save` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torchlite as torch


def read_weights(path: Path) -> dict[str, Any]:
    """Return a state dict. Nothing of the file runs. ValueError if it holds something else."""
    if path.suffix.lower() == ".safetensors":
        from torchlite.distributed.checkpoint._safetensors import read_header, read_tensor

        with path.open("rb") as stream:
            return {name: read_tensor(stream, place) for name, place in read_header(stream, str(path))[0].items()}
    found = torch.load(str(path), map_location="cpu", weights_only=True)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: it holds a {type(found).__name__}; wanted is a state dict")
    return found
