"""Paths of nodes in a graph that have the classes and functions of a pattern."""

from __future__ import annotations

from typing import Any

from torchlite import nn
from torchlite.ao.quantization.utils import MatchAllNode
from torchlite.fx import Node
from torchlite.nn.utils import parametrize

__all__ = ["apply_match"]


def _match(modules: dict[str, Any], node: Any, current: Any) -> bool:
    """Whether a node is the call of a class's module or of a function, or has a text as its target."""
    if isinstance(current, type) and issubclass(current, MatchAllNode):
        return True
    if not isinstance(node, Node):
        return False
    if isinstance(current, type) and issubclass(current, nn.Module):
        return (
            node.op == "call_module"
            and parametrize.type_before_parametrizations(modules[str(node.target)]) is current
        )  # fmt: skip
    if callable(current):
        return node.op == "call_function" and node.target is current
    return isinstance(current, str) and node.target == current


def apply_match(modules: dict[str, Any], pattern: Any, node: Any, matched_node_pattern: list[Any]) -> Any:
    """The nodes that have a pattern, from a node along first users.

    Args:
        modules: The modules by the targets of nodes.
        pattern: Classes, functions and targets; or one of them.
        node: The first node.
        matched_node_pattern: Nodes before it, with which the result begins.

    Returns:
        The nodes, or ``None``.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner.match_utils import apply_match
        >>> graph = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()))
        >>> first = next(node for node in graph.graph.nodes if node.op == "call_module")
        >>> apply_match(dict(graph.named_modules()), (torch.nn.Linear, torch.nn.ReLU), first, [])
        [_0, _1]
    """
    found = list(matched_node_pattern)
    for part in pattern if isinstance(pattern, tuple) else (pattern,):
        if node is None or not _match(modules, node, part):
            return None
        found.append(node)
        node = next(iter(getattr(node, "users", ())), None)
    return found
