"""Boxes of a `torch.fx` graph's drawing, and op counts."""

from __future__ import annotations

import collections
import operator
from typing import Any

import torchlite.onnx
from torchlite.onnx._graph_to_fx import OP_TYPE

from .svg_graph import Box

_PRODUCTS = ("conv", "mm", "matmul", "linear", "attention", "lstm", "gru", "einsum", "gemm")


def op_name(node: Any) -> str:
    """Return a short name of a node's op; of an ONNX file the file's name."""
    if OP_TYPE in node.meta:
        return str(node.meta[OP_TYPE])
    return _target_name(node)


def _target_name(node: Any) -> str:
    if node.op in ("call_method", "call_module"):
        return str(node.target)
    target = node.target
    name = getattr(target, "_opname", None) or getattr(target, "__name__", None) or str(target)
    return name.rpartition(".")[2]


def count_ops(graph: Any) -> collections.Counter[str]:
    """Count the ops in a graph and its subgraphs."""
    found: collections.Counter[str] = collections.Counter()
    for node in graph.nodes:
        if node.op.startswith("call_") and not _is_passthrough(node):
            found[op_name(node)] += 1
        inner = _subgraph(node)
        if inner is not None:
            found.update(count_ops(inner))
    return found


def _is_passthrough(node: Any) -> bool:
    """True for a getitem, and for what loading an ONNX file adds, such as a check of an input's type."""
    if node.target is operator.getitem:
        return True
    made_by_loader = getattr(node.target, "__module__", None) or ""
    return made_by_loader.startswith(torchlite.onnx.__name__ + ".") and OP_TYPE not in node.meta


def _subgraph(node: Any) -> Any:
    """Return the graph of a get_attr node: a branch or a loop's body."""
    if node.op != "get_attr" or node.graph.owning_module is None:
        return None
    found = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part, None)
    return getattr(found, "graph", None)


def make_boxes(graph: Any, inputs: set[str], missing: set[str]) -> list[Box]:
    """Return the boxes of a graph: `inputs` are the user's placeholders; the others are weights, which are not drawn.

    Ops in `missing` are marked.
    """
    found: list[Box] = []
    place: dict[Any, int | None] = {}  # a node's box; None if not drawn
    for node in graph.nodes:
        sources = [place[source] for source in node.all_input_nodes]
        reads = tuple(dict.fromkeys(source for source in sources if source is not None))
        hidden = node.op == "get_attr" or (node.op == "placeholder" and inputs and node.name not in inputs)
        if hidden or _is_passthrough(node) or (node.op not in ("placeholder", "output") and not reads):
            place[node] = reads[0] if reads else None
            continue
        place[node] = len(found)
        found.append(Box(_box_label(node), _box_tooltip(node), _box_kind(node, missing), reads))
    return found


def _box_kind(node: Any, missing: set[str]) -> str:
    if node.op in ("placeholder", "output"):
        return "input" if node.op == "placeholder" else "output"
    if _target_name(node) in missing:
        return "missing"
    name = op_name(node)
    return "product" if any(part in name.lower() for part in _PRODUCTS) else "op"


def _box_label(node: Any) -> str:
    name = node.name if node.op == "placeholder" else "output" if node.op == "output" else op_name(node)
    sizes = _format_sizes(node)
    return f"{name}  {sizes}" if sizes else name


def _format_sizes(node: Any) -> str:
    shape = getattr(node.meta.get("val", node.meta.get("tensor_meta")), "shape", None)
    return "" if shape is None else "x".join(map(str, shape)) or "scalar"


def _box_tooltip(node: Any) -> str:
    """Return the tooltip: the node as text, and the source line that created it."""
    trace = (node.meta.get("stack_trace") or "").strip().splitlines()
    return "\n".join([node.format_node() or str(node), *trace[-2:]])
