"""Sequences of nodes that are one op for the comparison, because quantization fuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn
from torchlite.ao.quantization import FakeQuantizeBase, ObserverBase
from torchlite.ao.quantization.backend_config import get_native_backend_config
from torchlite.ao.quantization.fx.quantize_handler import _get_pattern_to_quantize_handlers
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import GraphModule, Node

from .ns_types import NSNodeTargetType

NSFusionElType = Callable | str | tuple[str, Any]
NSFusionType = tuple[NSFusionElType, ...]


def get_type_a_related_to_b(
    base_name_to_sets_of_related_ops: dict[str, set[NSNodeTargetType]],
) -> set[tuple[NSNodeTargetType, NSNodeTargetType]]:
    """The pairs of ops that compute the same.

    Args:
        base_name_to_sets_of_related_ops: The sets of such ops.

    Example:
        >>> from torchlite.ao.ns.fx.pattern_utils import get_type_a_related_to_b
        >>> sorted(get_type_a_related_to_b({"0": {"a", "b"}}))
        [('a', 'a'), ('a', 'b'), ('b', 'a'), ('b', 'b')]
    """
    return {(a, b) for related in base_name_to_sets_of_related_ops.values() for a in related for b in related}


def get_reversed_fusions() -> list[tuple[NSFusionType, int]]:
    """The sequences of ops, from the last one to the first, and the place of the op that names them, from the first
    one.

    Example:
        >>> from torchlite.ao.ns.fx.pattern_utils import get_reversed_fusions
        >>> ((torch.nn.ReLU, torch.nn.Linear), 0) in get_reversed_fusions()
        True
    """
    patterns: list[Any] = []
    for pattern in _get_pattern_to_quantize_handlers(get_native_backend_config()):
        # (a, (b, c)) is a sequence too.
        if isinstance(pattern, tuple) and len(pattern) == 2 and isinstance(pattern[1], tuple) and len(pattern[1]) == 2:
            pattern = pattern[0], *pattern[1]
        patterns.append((pattern, 0))
    patterns.append(((("to", torch.float16), F.relu, F.linear, "dequantize"), 1))
    for number in (1, 2, 3):
        norm, conv = getattr(nn, f"BatchNorm{number}d"), getattr(nn, f"Conv{number}d")
        patterns += [((norm, conv), 0), ((nn.ReLU, norm, conv), 0)]
    found: list[tuple[NSFusionType, int]] = []
    for pattern, place in patterns:
        whole = isinstance(pattern, tuple)
        if whole:
            found.append((pattern, place))
        parts = pattern if whole else (pattern,)
        found += [((kind, *parts), place) for kind in (ObserverBase, FakeQuantizeBase)]
    return found


def _is_element(node: Node, element: Any, gm: GraphModule) -> bool:
    """Whether a node is a call of a sequence's element."""
    if node.op == "call_function":
        return not isinstance(element, (str, type)) and node.target == element
    if node.op == "call_module":
        return isinstance(element, type) and isinstance(getattr_from_fqn(gm, str(node.target)), element)
    if node.op == "call_method":
        if isinstance(element, tuple) and len(element) == 2:  # a method with an argument
            return node.target == element[0] and len(node.args) > 1 and node.args[1] == element[1]
        return isinstance(element, str) and node.target == element
    return False


def end_node_matches_reversed_fusion(
    end_node: Node, reversed_fusion: NSFusionType, gm: GraphModule, seen_nodes: set[Node]
) -> bool:
    """Whether nodes are a sequence of ops.

    Args:
        end_node: The last node.
        reversed_fusion: The sequence, from the last op.
        gm: The module.
        seen_nodes: Nodes that are parts of others.
    """
    node: Any = end_node
    for element in reversed_fusion:
        if not isinstance(node, Node) or node in seen_nodes or not _is_element(node, element, gm) or not node.args:
            return False
        node = node.args[0]
    return isinstance(node, Node)
