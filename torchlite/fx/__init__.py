"""`torch.fx`: traces programs to graphs of nodes, transforms and runs them, and generates Python code.

`symbolic_trace` runs a module with Proxies and returns a `GraphModule` with a mutable `graph`; `Interpreter` and
`Transformer` run and rewrite it.

>>> import torchlite as torch
>>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
>>> [(node.op, node.name) for node in module.graph.nodes]
[('placeholder', 'input_1'), ('call_module', '_0'), ('call_module', '_1'), ('output', 'output')]
"""

from . import immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "has_side_effect", "immutable_collections", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
