"""`SummaryWriter`: scalars, histograms, texts and hyperparameters for TensorBoard.

Output requires the package `tensorboard` or `tensorboardX`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter", "summary"]


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("FileWriter", "SummaryWriter"):
        return getattr(importlib.import_module(".writer", __name__), name)
    if name in ("summary", "writer"):
        return importlib.import_module(f".{name}", __name__)
    if name == "RecordWriter":
        return importlib.import_module("tensorboard.summary.writer.record_writer").RecordWriter
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
