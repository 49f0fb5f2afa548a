"""Constants in place of what a graph module computes from its attributes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite._library.op_overload import OpOverloadPacket
from torchlite.fx import Node
from torchlite.utils import _pytree

# Weights stay levels, so that products with levels can take them.
_KEPT = (
    "quantized_decomposed.dequantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.tensor",
    "quantized_decomposed.dequantize_per_channel.default", "quantized_decomposed.convert_element_type.no_fuse",
)  # fmt: skip


def _attribute(gm: Any, path: str) -> Any:
    for name in path.split("."):
        gm = getattr(gm, name)
    return gm


def _is_foldable(node: Node) -> bool:
    """True if a call has the same result each time and changes nothing, and is no conversion of levels to numbers."""
    if node.op != "call_function" or not node.all_input_nodes or node.is_impure() or str(node.target) in _KEPT:
        return False
    packet: Any = node.target
    schema = getattr(packet.default if isinstance(packet, OpOverloadPacket) else packet, "_schema", None)
    random = getattr(torch.Tag, "nondeterministic_seeded", None) in getattr(node.target, "tags", ())
    return schema is not None and not random and not any(argument.is_write for argument in schema.arguments)


def replace_node_with_constant(gm: Any, node: Node, constant: Any) -> None:
    """Replace a node by a new buffer of the module."""
    count = gm.__dict__.get("_frozen_param_count", 0)
    gm._frozen_param_count = count + 1
    name = f"_frozen_param{count}"
    gm.register_buffer(name, constant)
    with gm.graph.inserting_before(node):
        made = gm.graph.create_node("get_attr", name, (), {})
    node.replace_all_uses_with(made)
    made.meta.update(node.meta)
    gm.graph.erase_node(node)


def constant_fold(gm: Any, constraint_fn: Callable[[Node], bool] | None = None) -> None:
    """Replace the last nodes that depend on attributes alone by their values, and erase what nothing uses then.

    >>> import torchlite as torch
    >>> from torchlite._inductor.constant_folding import constant_fold
    >>> class Scaled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.register_buffer("scale", torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * (self.scale + 1)
    >>> module = torch.export.export(Scaled(), (torch.ones(2),)).module()
    >>> constant_fold(module)
    >>> [str(node.target) for node in module.graph.nodes if node.op == "call_function"], module(torch.ones(2))
    (['aten.mul.Tensor'], tensor([3., 3.]))
    """
    values: dict[Node, Any] = {}
    with torch.no_grad():
        for node in gm.graph.nodes:
            if node.op == "get_attr" and isinstance(_attribute(gm, node.target), torch.Tensor):
                values[node] = _attribute(gm, node.target)
            elif _is_foldable(node) and all(one in values for one in node.all_input_nodes):
                args, kwargs = _pytree.tree_map_only(Node, values.__getitem__, (node.args, node.kwargs))
                values[node] = node.target(*args, **kwargs)
    for node in list(gm.graph.nodes):
        folded = node.op == "call_function" and isinstance(values.get(node), torch.Tensor)
        if folded and any(user not in values for user in node.users) and (constraint_fn is None or constraint_fn(node)):
            replace_node_with_constant(gm, node, values[node])
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
