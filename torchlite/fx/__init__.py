"""torch.fx by its names: classes that programs derive from and ask for. Nothing is traced yet: what would trace, or
make a graph, says so.
"""

from __future__ import annotations

from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .proxy import Interpreter, Proxy, Tracer, Transformer, symbolic_trace, wrap

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]
