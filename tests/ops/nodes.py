"""The nodes that ops give to their results: how one is written down, for every sample of the op table.

nodes.json has PyTorch's (tools/record_nodes.py): op, sample, the inputs with a gradient, and the results' nodes.
`MulBackward0(input, -)` has two edges: to the leaf that is the argument `input`, and none. `UnbindBackward0#1(input)`
is its second output. An edge to another node has the node's name. `null` stands for results without a gradient, and
"refused" for an error.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np

from .op_db import leaves
from .saved_tensors import input_names

RECORDED = pathlib.Path(__file__).with_name("nodes.json")


def leaf_inputs(tree, library, wanted, made: list):
    """The arrays of a tree as leaves, which are appended to `made`; those of the numbers `wanted` want a gradient."""
    if isinstance(tree, np.ndarray):
        tensor = library.from_numpy(tree.copy())
        if tree.dtype.kind in "fc":
            number = sum(t.dtype.is_floating_point or t.dtype.is_complex for t in made)
            tensor.requires_grad_(number in wanted)
        made.append(tensor)
        return tensor
    if isinstance(tree, (list, tuple)):
        return type(tree)(leaf_inputs(item, library, wanted, made) for item in tree)
    if isinstance(tree, dict):
        return {k: leaf_inputs(v, library, wanted, made) for k, v in tree.items()}
    return tree


def described(node, number: int, names: dict) -> str:
    """A node with its edges."""
    edges = [_edge(after, index, names) for after, index in node.next_functions]
    return f"{_name(node, number)}({', '.join(edges)})"


def _name(node, number: int) -> str:
    return node.name().rpartition("::")[2] + (f"#{number}" if number else "")


def _edge(node, number: int, names: dict) -> str:
    if node is None:
        return "-"
    leaf = getattr(node, "variable", None)
    return _name(node, number) if leaf is None else names.get(id(leaf), "leaf")


def nodes_of(library, call, row, index: int, wanted) -> list[str | None] | None:
    """Call an op: the nodes of its results; None where none has a gradient."""
    made: list = []
    args, kwargs = row.values(index)
    args, kwargs = leaf_inputs(args, library, wanted, made), leaf_inputs(kwargs, library, wanted, made)
    names = {id(t): name for t, (name, _) in zip(made, input_names(row, index), strict=True)}
    library.manual_seed(0)
    results = leaves(call(*args, **kwargs))
    found = [None if t.grad_fn is None else described(t.grad_fn, t.output_nr, names) for t in results]
    return found if any(found) else None


def recorded() -> dict[str, dict[str, dict[str, list[str | None] | str | None]]]:
    """PyTorch's answers, by op, sample and choice."""
    return json.loads(RECORDED.read_text())
