"""Custom ops of `torch.library`: schemas, kernels by device, derivatives, and op packets."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Import submodules by PyTorch's names on access."""
    if name in ("custom_ops", "infer_schema", "utils"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
