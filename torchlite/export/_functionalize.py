"""Functionalization of graphs: replaces in-place ops and re-creates views of mutated tensors.

A value is a *root* and a chain of views. Each write gives the root a new node. A view taken before the write is
re-created where it is used.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torchlite as torch
from torchlite.fx import Graph, Node

aten = torch.ops.aten
_NATIVE_BATCH_NORMS = (aten.native_batch_norm.default, aten._native_batch_norm_legit.default)


@dataclasses.dataclass
class StorageRoot:
    """Storage: the node of its current content, and the number of writes."""

    node: Node
    writes: int = 0


@dataclasses.dataclass
class ViewStep:
    """A view op applied to the value before it."""

    target: Any
    args: tuple
    kwargs: dict
    item: int | None
    meta: dict
    before: dict  # metadata of the value before the view


@dataclasses.dataclass
class AliasedValue:
    """A value: its root and views, and its node when the root had been written `writes` times."""

    root: StorageRoot
    steps: tuple[ViewStep, ...]
    node: Node
    writes: int


def functionalize(graph: Graph) -> tuple[Graph, dict[str, Node]]:
    """Return an equivalent graph without in-place ops, and the new values of mutated inputs by name."""
    run = _Functionalizer(graph)
    return run.new_graph, run.changed()


class _Functionalizer:
    def __init__(self, graph: Graph) -> None:
        self.new_graph = Graph()
        self.values: dict[Node, Any] = {}
        self.inputs: dict[str, AliasedValue] = {}
        for node in graph.nodes:
            self._convert_node(node)

    def changed(self) -> dict[str, Node]:
        return {name: v.root.node for name, v in self.inputs.items() if v.root.writes}

    def _make_root_value(self, node: Node) -> AliasedValue:
        return AliasedValue(StorageRoot(node), (), node, 0)

    def use(self, value: Any) -> Any:
        """Return the node of a value's current content."""
        if isinstance(value, list):
            return [self.use(v) for v in value]
        if not isinstance(value, AliasedValue):
            return value
        if value.writes != value.root.writes:
            node = value.root.node
            for step in value.steps:
                node = self._apply_view_step(step, node)
            value.node, value.writes = node, value.root.writes
        return value.node

    def _apply_view_step(self, step: ViewStep, node: Node) -> Node:
        made = self._add_call(step.target, (node, *step.args), step.kwargs, step.meta if step.item is None else {})
        if step.item is not None:
            made.meta["val"] = step.meta.get("list")
            made = self._add_call(operator.getitem, (made, step.item), {}, step.meta)
        return made

    def _add_call(self, target: Any, args: tuple, kwargs: dict, meta: dict) -> Node:
        node = self.new_graph.create_node("call_function", target, args, kwargs, name=getattr(target, "_opname", None))
        node.meta.update({k: v for k, v in meta.items() if k != "list"})
        return node

    def argument(self, value: Any) -> Any:
        """Return an argument in the new graph."""
        if isinstance(value, Node):
            return self.use(self.values[value])
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        return value

    def _convert_node(self, node: Node) -> None:
        if node.op == "placeholder":
            copied = self.new_graph.node_copy(node)
            copied.name = node.name
            self.values[node] = self.inputs[node.name] = self._make_root_value(copied)
            return
        if node.op == "get_attr":
            self.values[node] = self._make_root_value(self.new_graph.node_copy(node))
            return
        if node.op == "output":
            self.new_graph.output(tuple(self.argument(list(node.args[0])))).meta["val"] = None  # type: ignore[arg-type]
            return
        if node.target in _NATIVE_BATCH_NORMS and node.args[5] and node.args[3] is not None:
            self._convert_batch_norm(node)
            return
        schema = getattr(node.target, "_schema", None)
        if schema is not None and node.target is not operator.getitem:
            written = [a for a in schema.arguments if a.is_write]
            if written:
                self._convert_in_place_op(node)
                return
            if getattr(node.target, "is_view", False) and isinstance(node.args[0], Node):
                self._convert_view(node)
                return
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            listed = self.values[node.args[0]]
            if isinstance(listed, _MultiViewResult):
                self.values[node] = listed.item(self, node)
                return
        copied = self._add_call(
            node.target, tuple(self.argument(list(node.args))), self.argument(dict(node.kwargs)), node.meta
        )
        self.values[node] = self._make_root_value(copied)

    def _convert_batch_norm(self, node: Node) -> None:
        """Convert a batch norm that updates running statistics: the new statistics become two more results."""
        held: list[Any] = [node.args[3], node.args[4]]
        arguments = tuple(self.argument(list(node.args)))
        meta = {**node.meta, "val": [*node.meta["val"], *(n.meta.get("val") for n in held)]}
        made = self._add_call(aten._native_batch_norm_legit_functional.default, arguments, {}, meta)
        self.values[node] = self._make_root_value(made)
        for place, statistic in enumerate(held):
            became = self._add_call(operator.getitem, (made, 3 + place), {}, dict(statistic.meta))
            self._set_content(self.values[statistic], became)

    def _convert_view(self, node: Node) -> None:
        first: Any = node.args[0]
        base = self.values[first]
        rest = tuple(self.argument(list(node.args[1:])))
        step = ViewStep(node.target, rest, self.argument(dict(node.kwargs)), None, dict(node.meta), dict(first.meta))
        if isinstance(node.meta.get("val"), (list, tuple)):
            self.values[node] = _MultiViewResult(base, step)
            return
        made = self._apply_view_step(step, self.use(base))
        self.values[node] = AliasedValue(base.root, (*base.steps, step), made, base.root.writes)

    def _convert_in_place_op(self, node: Node) -> None:
        """Convert an in-place op: its result becomes the target's new content."""
        target: Any = node.target
        name = target._opname
        first: Any = node.args[0]
        value: AliasedValue = self.values[first]
        now = self.use(value)
        args = [now, *self.argument(list(node.args[1:]))]
        kwargs = self.argument(dict(node.kwargs))
        meta = {**node.meta, "val": first.meta.get("val")}
        if name == "detach_":
            self.values[node] = value
            return
        if name == "zero_":
            new_value = self._add_call(aten.full_like.default, (now, 0), {}, meta)
        elif name == "copy_":
            new_value = (
                args[1] if self._is_whole_copy(node) else self._add_call(aten.copy.default, tuple(args), kwargs, meta)
            )
        else:
            packet = getattr(aten, name.removesuffix("_"))
            new_value = self._add_call(getattr(packet, target._overloadname), tuple(args), kwargs, meta)
        self._set_content(value, new_value)
        self.values[node] = value

    def _is_whole_copy(self, node: Node) -> bool:
        """True if a copy replaces the target by its source: a value of equal size, dtype and device."""
        target, source = node.args[:2]
        if not isinstance(source, Node) or source.op != "call_function" or source is target:
            return False
        old, new = target.meta.get("val"), source.meta.get("val")  # type: ignore[union-attr]
        return isinstance(new, torch.Tensor) and all(
            getattr(old, name) == getattr(new, name) for name in ("shape", "dtype", "device")
        )

    def _set_content(self, value: AliasedValue, node: Node) -> None:
        """Set a value's content to a node, and that of its root."""
        whole = node
        befores: list[Node] = [value.root.node][: len(value.steps)]
        for step in value.steps[:-1]:
            befores.append(self._apply_view_step(step, befores[-1]))
        for step, before in zip(reversed(value.steps), reversed(befores), strict=True):
            whole = self._invert_view_step(step, before, whole)
        value.root.node, value.root.writes = whole, value.root.writes + 1
        value.node, value.writes = node, value.root.writes

    def _invert_view_step(self, step: ViewStep, before: Node, new: Node) -> Node:
        """Return the value before a view after the view's content becomes `new`."""
        name = step.target._opname
        meta = {"val": step.before.get("val")}
        sizes: Any = step.before.get("val")
        if step.item is not None:
            dim = (
                step.args[1]
                if name != "unbind" and len(step.args) > 1
                else step.args[0]
                if name == "unbind" and step.args
                else 0
            )
            if name == "unbind":
                return self._add_call(aten.select_scatter.default, (before, new, dim, step.item), {}, meta)
            taken = step.args[0]
            start = taken * step.item if isinstance(taken, int) else sum(taken[: step.item])
            width = taken if isinstance(taken, int) else taken[step.item]
            return self._add_call(aten.slice_scatter.default, (before, new, dim, start, start + width), {}, meta)
        if name in ("slice", "select"):
            scatter = {"slice": aten.slice_scatter.default, "select": aten.select_scatter.default}[name]
            return self._add_call(scatter, (before, new, *step.args), {}, meta)
        if name in ("transpose", "t", "numpy_T", "unsqueeze", "squeeze", "permute"):
            return self._apply_inverse_view(name, step, new, meta)
        if name in ("alias", "detach", "lift_fresh"):
            return new
        if name in ("view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as"):
            shape = [int(n) for n in sizes.shape]
            return self._add_call(aten.view.default, (new, shape), {}, meta)
        if name == "diagonal":
            return self._add_call(aten.diagonal_scatter.default, (before, new, *step.args), {}, meta)
        if name == "expand":
            return self._add_call(aten.copy.default, (before, new), {}, meta)
        raise NotImplementedError(f"run_decompositions: a write through {step.target} is not followed")

    def _apply_inverse_view(self, name: str, step: ViewStep, new: Node, meta: dict) -> Node:
        if name in ("t", "numpy_T"):
            return self._add_call(aten.permute.default, (new, list(range(meta["val"].ndim))[::-1]), {}, meta)
        if name == "transpose":
            order = list(range(meta["val"].ndim))
            order[step.args[0]], order[step.args[1]] = order[step.args[1]], order[step.args[0]]
            return self._add_call(aten.permute.default, (new, order), {}, meta)
        if name == "unsqueeze":
            return self._add_call(aten.squeeze.dims, (new, [step.args[0]]), {}, meta)
        if name == "squeeze":
            return self._add_call(aten.view.default, (new, [int(n) for n in meta["val"].shape]), {}, meta)
        order = [d % len(step.args[0]) for d in step.args[0]]
        return self._add_call(aten.permute.default, (new, [order.index(d) for d in range(len(order))]), {}, meta)


class _MultiViewResult:
    """Views returned by one op."""

    def __init__(self, base: AliasedValue, step: ViewStep) -> None:
        self.base, self.step = base, step
        self.listed: Node | None = None

    def item(self, run: _Functionalizer, node: Node) -> AliasedValue:
        place: Any = node.args[1]
        step = dataclasses.replace(self.step, item=place, meta={**node.meta, "list": self.step.meta.get("val")})
        if self.listed is None:  # no write is between the op and its items, which the recorder puts behind it
            self.listed = run._add_call(
                self.step.target, (run.use(self.base), *self.step.args), self.step.kwargs, self.step.meta
            )
        made = run._add_call(operator.getitem, (self.listed, place), {}, node.meta)
        return AliasedValue(self.base.root, (*self.base.steps, step), made, self.base.root.writes)
