"""`NodeSource`: which node, of which graph and by which pass, a node was made of."""

from __future__ import annotations

import copy
import enum
from typing import Any

from .node import Node


class NodeSourceAction(enum.Enum):
    """What a pass did: it created a node for another one, or replaced it."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The origin of a node, an item of ``meta["from_node"]``.

    Args:
        node: The node that the new one was made of; None if there is none. Its own origins become `from_node`.
        pass_name: Name of the pass.
        action: What the pass did, or a list of it.

    Raises:
        AssertionError: An action is no `NodeSourceAction`.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.fx.traceback import NodeSource, NodeSourceAction
        >>> node = next(iter(torch.fx.symbolic_trace(lambda x: x).graph.nodes))
        >>> source = NodeSource(node, "pass", NodeSourceAction.CREATE)
        >>> source.name, source.target, source.to_dict()["action"]
        ('x', 'x', 'create')
    """

    class NodeInfo:
        """Name, target and graph of a node."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Node | None, pass_name: str = "", action: Any = None) -> None:
        actions = [] if action is None else action if isinstance(action, list) else [action]
        for one in actions:
            if not isinstance(one, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(one)}")
        self.pass_name, self.action = pass_name, actions
        self.node_info = None if node is None else self.NodeInfo(node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = [] if node is None else copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """Name of the node, "" without one."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """Target of the node as text, "" without one."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """Number of the node's graph, -1 without one."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(one.value for one in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """Return the source and those before it as text, a line each, ten at most.

        Args:
            indent: Depth of the first line.
        """
        if indent > 9:
            return ""
        place = f"name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}"
        line = f"{' ' * (4 * indent)}({place}, graph_id={self.graph_id})\n"
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """Return the source and those before it as plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        """Return the source of `to_dict`; None for None."""
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        found = cls(None, d.get("pass_name", ""))
        found.action = [NodeSourceAction(name) for name in d.get("action", "").split("+") if name]
        if {"name", "target", "graph_id"} <= d.keys():
            found.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        sources = map(cls._from_dict, d.get("from_node") or [])
        found.from_node = [source for source in sources if source is not None]
        return found

    def __repr__(self) -> str:
        return self.print_readable()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name, self._get_action_string(), *self.from_node))
