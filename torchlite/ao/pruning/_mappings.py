"""Quantized layers with sparse weights, by the float ones that they replace."""

from __future__ import annotations

from typing import Any

from torchlite import nn

__all__ = ["get_dynamic_sparse_quantized_mapping", "get_static_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping() -> dict[Any, Any]:
    """The layers on quantized tensors, by float ones.

    Example:
        >>> [kind.__name__ for kind in torch.ao.pruning.get_static_sparse_quantized_mapping()]
        ['Linear']
    """
    from torchlite.ao.nn.sparse.quantized import Linear

    return {nn.Linear: Linear}


def get_dynamic_sparse_quantized_mapping() -> dict[Any, Any]:
    """The layers that quantize their inputs, by float ones.

    Example:
        >>> [kind.__name__ for kind in torch.ao.pruning.get_dynamic_sparse_quantized_mapping()]
        ['Linear']
    """
    from torchlite.ao.nn.sparse.quantized.dynamic import Linear

    return {nn.Linear: Linear}
