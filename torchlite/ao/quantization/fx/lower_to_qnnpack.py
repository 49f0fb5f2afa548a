"""Lowering to QNNPACK: that of all kernels of PyTorch."""

from __future__ import annotations

from typing import Any

from torchlite.fx import GraphModule

from ._lower_to_native_backend import _lower_to_native_backend

__all__ = ["lower_to_qnnpack"]


def lower_to_qnnpack(
    model: GraphModule, qconfig_map: dict[str, Any], node_name_to_scope: dict[str, tuple[str, type]]
) -> GraphModule:
    """The model with quantized layers in place of reference ones.

    Args:
        model: The model.
        qconfig_map: The configuration of each node by its name.
        node_name_to_scope: The name and the class of the module in which each node was made.
    """
    return _lower_to_native_backend(model, qconfig_map, node_name_to_scope)
