"""Calls that are made twice with the same arguments are made once."""

from __future__ import annotations

from typing import Any

from ....._aten import ops
from .....utils._pytree import tree_flatten
from ...._compatibility import compatibility
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, map_arg
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_DRAWS = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu "
    "rand_like rand randint randn randperm"
).split()
_WRITES = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()


@compatibility(is_backward_compatible=False)
def get_CSE_banned_ops() -> set[Any]:
    """The ops of `torch.ops.aten` of which two calls with the same arguments differ: those that draw or write."""
    return {getattr(ops.aten, name) for name in (*_DRAWS, *_WRITES) if hasattr(ops.aten, name)}


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Makes a graph in which equal calls of functions are made once.

    banned_ops: ops whose calls all stay. Only graphs of functions that have no effects are fit for it.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module with the graph; the same one where nothing occurs twice."""
        graph = Graph()
        env: dict[Node, Node] = {}
        seen: dict[Any, list[tuple[Any, Node]]] = {}
        changed = False
        for node in graph_module.graph.nodes:
            op = getattr(node.target, "overloadpacket", node.target)
            if node.op in ("placeholder", "output", "get_attr") or op in self.banned_ops:
                env[node] = graph.node_copy(node, lambda n: env[n])
                continue
            leaves, spec = tree_flatten(map_arg((node.args, dict(node.kwargs)), lambda n: env[n]))
            # (Of values that are equal only those of one type are the same: 1, 1.0 and True.)
            same = [(type(leaf), leaf) for leaf in leaves]
            key = (node.op, node.target, len(leaves))
            known = seen.setdefault(key, [])
            before = next((made for found, made in known if _equal(found, (same, spec))), None)
            if before is not None:
                changed = True
                env[node] = before
                continue
            env[node] = graph.node_copy(node, lambda n: env[n])
            known.append(((same, spec), env[node]))
        return PassResult(GraphModule(graph_module, graph) if changed else graph_module, changed)


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (RuntimeError, TypeError, ValueError):  # tensors, and what else has no truth
        return False
