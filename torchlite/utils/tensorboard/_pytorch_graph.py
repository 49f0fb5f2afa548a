"""A model's graph for TensorBoard, which is not implemented."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["graph"]


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> NoReturn:
    """NotImplementedError: graphs are not written for TensorBoard."""
    raise NotImplementedError("torchlite writes no graphs for TensorBoard; torch.fx.passes.graph_drawer draws models")
