"""Compares graphs, and re-exports the lifting of subgraphs to modules."""

from __future__ import annotations

from ..._compatibility import compatibility
from ...graph import Graph
from .lifting import HolderModule, lift_subgraph_as_module
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


@compatibility(is_backward_compatible=False)
def compare_graphs(left: Graph, right: Graph) -> bool:
    """True if two graphs have equal inputs, nodes and outputs, in any node order.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.utils.common import compare_graphs
    >>> a, b = (torch.fx.symbolic_trace(lambda x: torch.relu(x)).graph for _ in "ab")
    >>> compare_graphs(a, b)
    True
    """
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))
