"""Lifts a subgraph to a module with the attributes it uses."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule

__all__ = ["HolderModule", "lift_subgraph_as_module"]


@compatibility(is_backward_compatible=False)
class HolderModule(Module):
    """Container of submodules."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


@compatibility(is_backward_compatible=False)
def lift_subgraph_as_module(
    gm: Any, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module of a subgraph copied from `gm`, with the attributes it uses, and their new names by old ones."""
    holder = HolderModule({})
    names: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = str(node.target)
        *path, last = target.split(".")
        theirs, ours = gm, holder
        for part in path:
            if not hasattr(ours, part):
                ours.add_module(part, HolderModule({}))
            theirs, ours = getattr(theirs, part), getattr(ours, part)
        names[target] = f"{comp_name}.{target}"
        setattr(ours, last, getattr(theirs, last))
    return GraphModule(holder, subgraph, class_name), names
