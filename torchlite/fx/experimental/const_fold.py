"""Constant folding: computes subgraphs that depend on a module's attributes only once."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import getitem
from typing import Any

from ..._tensor import Tensor
from ...nn.modules.container import ParameterList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """GraphModule with a constant subgraph, evaluated at the first call."""

    def __init__(
        self,
        root: Any,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Evaluate the constant subgraph. Raise AssertionError the second time."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        made = (
            ParameterList(map(self._add_folded_parameter, found))
            if isinstance(found, tuple)
            else self._add_folded_parameter(found)
        )
        setattr(self, self.fx_const_folded_attrs_name, made)

    def _add_folded_parameter(self, value: Any) -> Parameter:
        if isinstance(value, Tensor):
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        return Parameter(Tensor([value]).to(device=self.device_for_folded_attrs), requires_grad=False)


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """Return a similar attribute name that the module does not use."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Any]:
    """Inline a submodule's nodes at its call; return the new nodes by the old ones."""
    module = gm.get_submodule(inline_mod_name)
    if not isinstance(module, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(module)}")
    calls = gm.graph.find_nodes(op="call_module", target=inline_mod_name)
    if not calls:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    call = calls[0]
    env: dict[Node, Any] = {}
    for place, node in enumerate(module.graph.find_nodes(op="placeholder")):
        env[node] = call.kwargs[node.name] if node.name in call.kwargs else call.args[place]
    with gm.graph.inserting_before(call):
        result = gm.graph.graph_copy(module.graph, env)
    if isinstance(result, (list, tuple)):
        for user in [user for user in call.users if user.target is getitem and isinstance(user.args[1], int)]:
            env[user] = result[user.args[1]]
            user.replace_all_uses_with(env[user])
            gm.graph.erase_node(user)
    for user in list(call.users):
        replaced = (map_arg(part, lambda n: result if n is call else n) for part in (user.args, user.kwargs))
        user.args, user.kwargs = replaced
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return env


def _is_impure(module: GraphModule) -> bool:
    """True if a module's graph, or a submodule's, has side effects."""
    return any(
        node.is_impure()
        if node.op == "call_function"
        else node.op == "call_module"
        and isinstance(inner := module.get_submodule(str(node.target)), GraphModule)
        and _is_impure(inner)
        for node in module.graph.nodes
    )


def _find_constant_nodes(module: GraphModule, skips: Callable[[Node], bool] | None) -> set[Node]:
    """Return the nodes that depend on attributes only."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure() or skips is not None and skips(node):
            continue
        if node.op == "call_module":
            called = module.get_submodule(str(node.target))
            if isinstance(called, GraphModule) and _is_impure(called):
                continue
        if node.op == "get_attr" or found.issuperset(node.all_input_nodes):
            found.add(node)
    return found


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """Return a module that evaluates its constant subgraph at the first call and stores the results.

    skip_folding_node_fn: predicate of nodes to exclude, with their dependents.

    >>> import torchlite as torch
    >>> from torchlite.fx.experimental.const_fold import split_const_subgraphs
    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = torch.nn.Parameter(torch.ones(2))
    ...     def forward(self, x):
    ...         return x + torch.exp(self.weight * 0)
    >>> folded = split_const_subgraphs(Net())
    >>> folded(torch.zeros(2))
    tensor([1., 1.], grad_fn=<AddBackward0>)
    >>> [node.name for node in folded.graph.nodes]
    ['x', '_fx_const_folded_attrs', 'add', 'output']
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _find_constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    const: GraphModule = split.submod_0
    for part in (getattr(split, "submod_1", None), const):
        for node in part.graph.find_nodes(op="call_module") if part is not None else ():
            setattr(split, str(node.target), getattr(part, str(node.target)))
    (call,) = split.graph.find_nodes(op="call_module", target="submod_0")
    inner = const.graph
    inner.owning_module = split  # it has all attributes that the nodes name
    for node, given in zip(inner.find_nodes(op="placeholder"), call.args, strict=True):
        with inner.inserting_before(node):
            new_node = inner.get_attr(str(given.target))
        new_node.meta = dict(node.meta)
        node.replace_all_uses_with(new_node)
        inner.erase_node(node)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    several = isinstance(inner.output_node().args[0], tuple)
    setattr(split, name, ParameterList() if several else Parameter())
    with split.graph.inserting_before(call):
        folded = split.graph.get_attr(name)
    folded.meta = dict(call.meta)
    call.replace_all_uses_with(folded)
    if hasattr(split, "submod_1"):
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, inner, name, device_for_folded_attrs)
