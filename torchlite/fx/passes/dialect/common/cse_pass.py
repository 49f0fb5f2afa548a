"""Common subexpression elimination."""

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
    """Return the `torch.ops.aten` ops excluded from CSE: random and mutating ones."""
    return {getattr(ops.aten, name) for name in (*_DRAWS, *_WRITES) if hasattr(ops.aten, name)}


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Merge equal function calls.

    banned_ops: ops to keep. Valid for graphs of pure functions only.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module with the new graph, or the same one if nothing repeats."""
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
            # (Equal constants must also have equal types: 1, 1.0 and True differ.)
            same = [(type(leaf), leaf) for leaf in leaves]
            key = (node.op, node.target, len(leaves))
            known = seen.setdefault(key, [])
            before = next((made for found, made in known if _is_equal(found, (same, spec))), None)
            if before is not None:
                changed = True
                env[node] = before
                continue
            env[node] = graph.node_copy(node, lambda n: env[n])
            known.append(((same, spec), env[node]))
        return PassResult(GraphModule(graph_module, graph) if changed else graph_module, changed)


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (RuntimeError, TypeError, ValueError):  # tensors and others without a truth value
        return False
