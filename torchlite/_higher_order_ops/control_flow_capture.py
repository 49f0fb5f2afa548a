"""Captures control flow (cond, while_loop, map, scan) as graph nodes with subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._tensor import Tensor
from torchlite.utils import _pytree as pytree

from .higher_order_operator import OPERATORS


def current_recorder() -> Any:
    """Return the active recorder, None if no program is captured."""
    import sys

    module = sys.modules.get(f"{__name__.partition('.')[0]}.fx.experimental._op_recorder")
    return None if module is None else module.current_recorder()


class CapturedSubgraph:
    """A function captured as a graph. `module` has it, `outer` the closed-over tensors of the program."""

    def __init__(self, found: Any, function: Callable, operands: list[Any]) -> None:
        from torchlite.fx import Graph
        from torchlite.fx.experimental._op_recorder import OpRecorder

        self.graph = Graph()
        self.outer: list[Any] = []
        self.places: list[Any] = []
        self.parent = found
        self.inner = OpRecorder(
            self.graph, self._from_outside, whole=found.whole, decompositions=found.decompositions, outer=found
        )
        self.copies = [self._copy_value(operand, f"arg{number}_1") for number, operand in enumerate(operands)]
        self._first = True
        with self.inner:
            result = function(*self.copies)
        self.leaves, self.spec = pytree.tree_flatten(result)
        self.tensors = [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def _copy_value(self, operand: Any, name: str) -> Any:
        node = self.graph.placeholder(name)
        self.places.append(node)
        if not isinstance(operand, Tensor):
            node.meta["val"] = operand
            return operand
        self.parent.node_of(operand)
        alike = operand.detach().clone()
        self._set_tensor_metadata(node, alike)
        return alike

    def _set_tensor_metadata(self, node: Any, tensor: Any) -> None:
        from torchlite._subclasses.fake_constructors import fake_tensor_like

        node.meta["val"] = fake_tensor_like(tensor)
        self.inner.track(tensor, node)

    def _from_outside(self, tensor: Any) -> Any:
        """Return the placeholder of a closed-over tensor."""
        from torchlite._subclasses.fake_constructors import fake_tensor_like

        self.parent.node_of(tensor)
        self.outer.append(tensor)
        last = self.places[-1] if self.places else None
        if last is None:
            with self.graph.inserting_before(next(iter(self.graph.nodes), None)):
                node = self.graph.placeholder(f"outer{len(self.outer)}_1")
        else:
            with self.graph.inserting_after(last):
                node = self.graph.placeholder(f"outer{len(self.outer)}_1")
        node.meta["val"] = fake_tensor_like(tensor)
        self.places.append(node)
        return node

    def _add_placeholder(self, name: str) -> Any:
        """Add an input; its argument gets the node's unique name."""
        node = self.graph.placeholder(name)
        node.target = node.name
        return node

    def module(self, outer: list[Any], single: bool = False) -> Any:
        """Return the graph as a module whose last inputs are `outer`. `single`: return one result without a tuple."""
        from torchlite.fx import GraphModule
        from torchlite.fx._dead_code import eliminate_unused
        from torchlite.nn import Module

        count = len(self.places) - len(self.outer)
        order = {id(t): node for t, node in zip(self.outer, self.places[count:], strict=True)}
        last = self.places[count - 1] if count else None
        for tensor in outer:
            node = order.get(id(tensor))
            if last is None:
                with self.graph.inserting_before(next(iter(self.graph.nodes), None)):
                    place = self._add_placeholder("outer_1")
            else:
                with self.graph.inserting_after(last):
                    place = self._add_placeholder("outer_1")
            if node is not None:
                place.meta.update(node.meta)
                node.replace_all_uses_with(place)
                self.graph.erase_node(node)
            else:
                from torchlite._subclasses.fake_constructors import fake_tensor_like

                place.meta["val"] = fake_tensor_like(tensor)
            last = place
        results = tuple(self.inner.argument(leaf) for leaf in self.leaves)
        self.graph.output(results[0] if single else results).meta["val"] = None
        eliminate_unused(self.graph)
        root = Module()
        for name, module in self.inner.modules.items():
            root.add_module(name, module)
        return GraphModule(root, self.graph)


def _unite_outer_tensors(parts: list[CapturedSubgraph]) -> list[Any]:
    """Return the distinct closed-over tensors of several graphs."""
    found: dict[int, Any] = {}
    for part in parts:
        for tensor in part.outer:
            found.setdefault(id(tensor), tensor)
    return list(found.values())


def _make_subgraph_node(found: Any, name: str, module: Any) -> Any:
    """Return the `get_attr` node of a subgraph."""
    number = 0
    while f"{name}_{number}" in found.modules:
        number += 1
    found.modules[f"{name}_{number}"] = module
    return found.graph.create_node("get_attr", f"{name}_{number}", (), {}, f"{name}_{number}")


def _wrap_results(found: Any, node: Any, results: list[Any]) -> list[Any]:
    return found.bind(node, tuple(results))


def _create_node(found: Any, name: str, args: tuple) -> Any:
    from torchlite.fx.experimental._op_recorder import user_stack_trace

    node = found.graph.create_node("call_function", OPERATORS[name], args, {}, name=name)
    node.meta["stack_trace"] = user_stack_trace()
    return node


def capture_cond(found: Any, pred: Any, true_fn: Callable, false_fn: Callable, operands: Any) -> Any:
    """Capture `cond` as a node."""
    from torchlite.fx.experimental._unbacked_symbols import to_concrete

    leaves, spec = pytree.tree_flatten(tuple(operands))

    def flat(function: Callable) -> Callable:
        return lambda *values: function(*pytree.tree_unflatten(list(values), spec))

    with found.paused():
        parts = [CapturedSubgraph(found, flat(function), leaves) for function in (true_fn, false_fn)]
    if parts[0].spec != parts[1].spec:
        raise RuntimeError(
            f"Unmatched output spec from torch.cond branches: true branch tree_spec {parts[0].spec} vs false branch "
            f"tree_spec {parts[1].spec}."
        )
    for a, b in zip(parts[0].tensors, parts[1].tensors, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(
                f"torch.cond: the branches return tensors of {tuple(a.shape)}, {a.dtype} and of {tuple(b.shape)}, "
                f"{b.dtype}"
            )
    outer = _unite_outer_tensors(parts)
    modules = [part.module(outer) for part in parts]
    graphs = [
        _make_subgraph_node(found, name, module)
        for name, module in zip(("true_graph", "false_graph"), modules, strict=True)
    ]
    given = tuple(found.argument(v) for v in [*leaves, *outer])
    node = _create_node(found, "cond", (found.argument(pred), *graphs, given))
    with found.paused():
        taken = bool(to_concrete(pred))
    results = _wrap_results(found, node, parts[0 if taken else 1].leaves)
    return pytree.tree_unflatten(list(results), parts[0].spec)


def capture_while_loop(found: Any, cond_fn: Callable, body_fn: Callable, carried: tuple) -> Any:
    """Capture `while_loop` as a node."""
    leaves, spec = pytree.tree_flatten(carried)

    def flat(function: Callable) -> Callable:
        return lambda *values: function(*pytree.tree_unflatten(list(values), spec))

    with found.paused():
        parts = [CapturedSubgraph(found, flat(function), leaves) for function in (cond_fn, body_fn)]
    outer = _unite_outer_tensors(parts)
    modules = [parts[0].module(outer, single=True), parts[1].module(outer)]
    graphs = [
        _make_subgraph_node(found, name, module)
        for name, module in zip(("while_loop_cond_graph", "while_loop_body_graph"), modules, strict=True)
    ]
    first, more = tuple(map(found.argument, leaves)), tuple(map(found.argument, outer))
    node = _create_node(found, "while_loop", (*graphs, first, more))
    with found.paused():
        values = carried
        while bool(cond_fn(*values)):
            values = tuple(body_fn(*values))
        results = [v.clone() for v in pytree.tree_leaves(values)]
    return pytree.tree_unflatten(_wrap_results(found, node, results), spec)


def capture_map(found: Any, f: Callable, xs: Any, args: tuple) -> Any:
    """Capture `map` as a node."""
    leaves, spec = pytree.tree_flatten(xs)
    more, rest = pytree.tree_flatten(args)

    def flat(*values: Any) -> Any:
        row = pytree.tree_unflatten(list(values[: len(leaves)]), spec)
        return f(row, *pytree.tree_unflatten(list(values[len(leaves) :]), rest))

    with found.paused():
        part = CapturedSubgraph(found, flat, [*(x[0] for x in leaves), *more])
        rows = [pytree.tree_leaves(flat(*row, *more)) for row in zip(*leaves, strict=True)]
        import torchlite as torch

        results = [torch.stack(parts) for parts in zip(*rows, strict=True)]
    outer = _unite_outer_tensors([part])
    graph = _make_subgraph_node(found, "body_graph", part.module(outer))
    given = tuple(map(found.argument, leaves)), tuple(map(found.argument, [*more, *outer]))
    node = _create_node(found, "map_impl", (graph, *given))
    return pytree.tree_unflatten(_wrap_results(found, node, results), part.spec)


def capture_scan(found: Any, combine_fn: Callable, init: Any, xs: Any) -> tuple[Any, Any]:
    """Capture a scan over the first dimension as a node."""
    import torchlite as torch

    state, state_spec = pytree.tree_flatten(init)
    leaves, spec = pytree.tree_flatten(xs)

    def flat(*values: Any) -> Any:
        carry = pytree.tree_unflatten(list(values[: len(state)]), state_spec)
        return combine_fn(carry, pytree.tree_unflatten(list(values[len(state) :]), spec))

    with found.paused():
        part = CapturedSubgraph(found, flat, [*state, *(x[0] for x in leaves)])
        carry, rows = list(state), []
        for place in range(leaves[0].shape[0]):
            out = pytree.tree_leaves(flat(*carry, *(x[place] for x in leaves)))
            carry = out[: len(state)]
            rows.append(out[len(state) :])
        results = [*(c.clone() for c in carry), *(torch.stack(parts) for parts in zip(*rows, strict=True))]
    outer = _unite_outer_tensors([part])
    graph = _make_subgraph_node(found, "scan_combine_graph", part.module(outer))
    given = [tuple(map(found.argument, values)) for values in (state, leaves, outer)]
    node = _create_node(found, "scan", (graph, *given))
    bound = _wrap_results(found, node, results)
    return pytree.tree_unflatten(list(bound), part.spec)
