"""Description of a split model, stage-to-rank mappings, and errors of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PipeliningMetadataError(RuntimeError):
    """Tensors between two stages differ from the agreed specs."""


PipeliningShapeError = PipeliningMetadataError  # its name until PyTorch 2.11


@dataclass
class PipeInfo:
    """A split model: its graph, its number of stages, and whether it includes a loss."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


def generate_stage_to_rank_mapping(pp_size: int, num_stages: int, style: str = "loop") -> dict[int, int]:
    """Return {stage: rank}: round-robin ("loop"), or forth and back ("v").

    >>> from torchlite.distributed.pipelining._utils import generate_stage_to_rank_mapping
    >>> generate_stage_to_rank_mapping(2, 4, "v")
    {0: 0, 1: 1, 2: 1, 3: 0}
    """
    if style not in ("loop", "v"):
        raise ValueError(f"Style {style} is not supported.")
    if style == "v" and num_stages % pp_size:
        raise ValueError(f"num_stages {num_stages} must be evenly divisible by pp_size {pp_size} for V schedules")
    turns = {stage: divmod(stage, pp_size) for stage in range(num_stages)}
    return {
        stage: pp_size - 1 - place if style == "v" and turn % 2 else place for stage, (turn, place) in turns.items()
    }


def generate_rank_to_stage_mapping(pp_size: int, num_stages: int, style: str = "loop") -> dict[int, list[int]]:
    """Return {rank: its stages, in order}."""
    found: dict[int, list[int]] = {rank: [] for rank in range(pp_size)}
    for stage, rank in generate_stage_to_rank_mapping(pp_size, num_stages, style).items():
        found[rank].append(stage)
    return found
