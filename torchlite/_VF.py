"""The functions of `torch` under the name by which PyTorch's own modules reach its C++."""

from __future__ import annotations

from typing import Any


def unique_dim(
    input: Any, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    """The distinct slices along a dimension, the inverse indices and the counts, whether requested or not."""
    import torchlite as torch

    return torch.unique(input, sorted, return_inverse=True, return_counts=True, dim=dim)


def __getattr__(name: str) -> Any:
    import torchlite as torch

    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(torch, name)
