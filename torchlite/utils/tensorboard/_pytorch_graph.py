"""A model's graph for TensorBoard: none is traced."""

from __future__ import annotations

from typing import Any

__all__ = ["graph"]


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> Any:
    """Refuses: there is no traced graph to draw."""
    raise NotImplementedError("torchlite draws no graph of a model: it wants torch.jit's trace")
