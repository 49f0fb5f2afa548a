"""`torch.fx`: traces programs to graphs of nodes, transforms and runs them, and generates Python code.

`symbolic_trace` runs a module with Proxies and returns a `GraphModule` with a mutable `graph`; `Interpreter` and
`Transformer` run and rewrite it.

>>> import torchlite as torch
>>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
>>> [(node.op, node.name) for node in module.graph.nodes]
[('placeholder', 'input_1'), ('call_module', '_0'), ('call_module', '_1'), ('output', 'output')]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy

if TYPE_CHECKING:
    from . import passes as passes
    from . import subgraph_rewriter as subgraph_rewriter
    from .subgraph_rewriter import replace_pattern
else:

    def __getattr__(name):
        # The search for patterns, and passes, are loaded on first access.
        if name not in ("config", "passes", "replace_pattern", "subgraph_rewriter"):
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        import importlib

        home = name if name in ("config", "passes") else "subgraph_rewriter"
        module = importlib.import_module(f".{home}", __name__)
        found = globals()[name] = module.replace_pattern if name == "replace_pattern" else module
        return found


# What this module imports for itself.
_INTERNAL = {"TYPE_CHECKING", "_INTERNAL", "annotations"}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "passes", "subgraph_rewriter"} - _INTERNAL)


__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "has_side_effect", "immutable_collections", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
