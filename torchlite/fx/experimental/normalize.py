"""Normalization of graphs: named call arguments (NormalizeArgs), Python operators (NormalizeOperators)."""

from __future__ import annotations

import operator
from typing import Any

import torchlite as torch

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Rewrite calls with all arguments by name, defaults included, where the signature is known."""

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Return a node's replacement, with its `meta`."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            types = [map_aggregate(part, _type_of) for part in (n.args, n.kwargs)]
            kinds = tuple(create_type_hint(kind) for kind in types[0])
            by_name = {name: create_type_hint(kind) for name, kind in types[1].items()}
            made = self.call_function(n.target, args, kwargs, kinds, by_name)
        else:
            made = super().run_node(n)
        if n.op != "output":
            self.node_map[made] = n
            made.node.meta = dict(n.meta)
            made.node.type = n.type
        return made

    def call_function(self, target: Any, args: Any, kwargs: Any, arg_types: Any = None, kwarg_types: Any = None) -> Any:
        """Return a function call with named arguments."""
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        args, kwargs = (args, kwargs) if found is None else found
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return a module call with named arguments."""
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *((args, kwargs) if found is None else found))


def _type_of(value: Any) -> Any:
    if isinstance(value, Node):
        return value.meta.get("type")
    return type(value)


class NormalizeOperators(Transformer):
    """Replace functions of `torch` by Python operators."""

    binary_magic_method_remap = {
        torch.add: operator.add, torch.mul: operator.mul, torch.sub: operator.sub, torch.div: operator.truediv,
        torch.floor_divide: operator.floordiv, torch.remainder: operator.mod, torch.eq: operator.eq,
        torch.ne: operator.ne, torch.lt: operator.lt, torch.le: operator.le, torch.gt: operator.gt,
        torch.ge: operator.ge,
    }  # fmt: skip

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the operator equivalent to a binary function."""
        found = self.binary_magic_method_remap.get(target)
        if found is None or len(args) != 2 or kwargs:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", found, args, {})
