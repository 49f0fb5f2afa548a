"""Extracts module parameters to the nodes that call the modules, for lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from ...nn.modules.activation import ReLU
from ...nn.modules.batchnorm import BatchNorm2d
from ...nn.modules.conv import Conv2d
from ...nn.modules.linear import Linear
from ...nn.modules.pooling import AdaptiveAvgPool2d, MaxPool2d
from .._compatibility import compatibility
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


@compatibility(is_backward_compatible=False)
def default_matching(name: str, target_version: int) -> str:
    """Return an attribute's name in a class version: the same in all.

    `target_version` has no effect.
    """
    return name


# By class: its version, its parameter attributes, and a function that returns their names.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    kind: (version, attributes.split(), default_matching)
    for kind, version, attributes in (
        (Linear, 1, "weight bias"),
        (Conv2d, 1, "weight bias kernel_size stride padding dilation groups padding_mode"),
        (BatchNorm2d, 2, "weight bias running_mean running_var eps"),
        (AdaptiveAvgPool2d, 1, ""),
        (MaxPool2d, 1, "kernel_size stride padding dilation return_indices ceil_mode"),
        (ReLU, 1, "inplace"),
    )
}


@compatibility(is_backward_compatible=False)
def extract_attrs_for_lowering(mod: Any) -> dict[str, Any]:
    """Return a module's attributes by name, with its class as `name`. Raise RuntimeError for a class that is not in
    `module_fetch_book` or newer than its entry.
    """
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{torch.typename(mod)} is not in the module_fetch_book yet, please add it to the book")
    version, names, called = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {torch.typename(mod)} version {mod._version}, please upgrade the "
            "module_fetch_book"
        )
    found = {name: getattr(mod, called(name, mod._version)) for name in names}
    return {"name": torch.typename(mod), **found}


@compatibility(is_backward_compatible=False)
def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Store module attributes in `node.attrs_for_lowering` of call_module nodes."""
    for node in fx_module.graph.find_nodes(op="call_module"):
        module = fx_module.get_submodule(str(node.target))
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(module)  # type: ignore[attr-defined]
