"""Ops that programs add: their schemas, kernels by device, derivatives, and how `torch.ops` calls them."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Modules that packages take by their names."""
    if name in ("custom_ops", "infer_schema", "utils"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
