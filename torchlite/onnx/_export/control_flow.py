"""Export rules of control flow: subgraphs become ONNX bodies that read outer values by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._element_types import NUMBERS
from .._protobuf import Message
from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue


def _subgraph_of(module: Any) -> Any:
    return module.graph.nodes


def _value_info(name: str, value: WriterValue) -> Message:
    """Return a value's type with the sizes of loop-carried values."""
    about = Message("TypeOfTensor", elem_type=NUMBERS[value.dtype])
    return Message("ValueInfo", name=name, type=Message("Type", tensor_type=about))


class _BodyWriter:
    """Builder of a body in the outer builder's namespace."""

    def __init__(self, work: Any) -> None:
        self.work, self.outer = work, work.writer
        self.writer = OnnxGraphBuilder(self.outer.version, self.outer)
        self.inputs: list[Message] = []
        self.outputs: list[Message] = []

    def __enter__(self) -> _BodyWriter:
        self.work.writer = self.writer
        return self

    def __exit__(self, *exc: Any) -> None:
        self.work.writer = self.outer

    def input(self, wish: str, dtype: str, sizes: tuple) -> WriterValue:
        name = self.writer.name(wish)
        self.inputs.append(_value_info(name, WriterValue(name, dtype, sizes)))
        return WriterValue(name, dtype, sizes)

    def run(self, module: Any, values: list[Any]) -> list[Any]:
        """Add a module's nodes applied to values; return its results."""
        nodes = list(_subgraph_of(module))
        env = dict(zip((n for n in nodes if n.op == "placeholder"), values, strict=True))
        found = self.work.graph(nodes, module, env)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def output(self, value: Any) -> None:
        """Return an output, copied if it is not a value of the body."""
        if not isinstance(value, WriterValue):
            kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
            value = WriterValue(self.writer.put(value, kind), kind, ())
        name = self.writer.op("Identity", value)
        self.outputs.append(_value_info(name, value))

    def graph(self, name: str) -> Message:
        return Message(
            "Graph", name=name, node=self.writer.nodes, input=self.inputs, output=self.outputs,
            initializer=list(self.writer.initializers.values()),
        )  # fmt: skip


def cond(work: Any, predicate: Any, true_graph: Any, false_graph: Any, operands: Any = ()) -> list[str]:
    if isinstance(predicate, bool):
        return _InlineWriter(work).run(true_graph if predicate else false_graph, list(operands))
    graphs, count = [], 0
    for name, module in (("then_branch", true_graph), ("else_branch", false_graph)):
        with _BodyWriter(work) as body:
            found = body.run(module, list(operands))
            for value in found:
                body.output(value)
        graphs.append(body.graph(name))
        count = len(found)
    writer = work.writer
    test = predicate.name if not predicate.ndim else writer.reshape(predicate, [])
    test = writer.cast(WriterValue(test, predicate.dtype, ()), "bool")
    out = writer.op("If", test, outputs=count, then_branch=graphs[0], else_branch=graphs[1])
    return [out] if count == 1 else out


class _InlineWriter:
    """Builder that inlines a subgraph at its call."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def run(self, module: Any, values: list[Any]) -> list[Any]:
        nodes = list(_subgraph_of(module))
        env = dict(zip((n for n in nodes if n.op == "placeholder"), values, strict=True))
        found = self.work.graph(nodes, module, env)
        return list(found) if isinstance(found, (list, tuple)) else [found]


def while_loop(work: Any, cond_graph: Any, body_graph: Any, carried: Any, extra: Any = ()) -> list[str]:
    writer = work.writer
    carried = [v if isinstance(v, WriterValue) else WriterValue(writer.put(v), "int64", ()) for v in carried]
    extra = list(extra)
    first = _InlineWriter(work).run(cond_graph, [*carried, *extra])[0]
    with _BodyWriter(work) as body:
        body.input("iteration", "int64", ())
        body.input("going", "bool", ())
        state = [body.input("state", v.dtype, v.sizes) for v in carried]
        new = body.run(body_graph, [*state, *extra])
        body.output(body.run(cond_graph, [*new, *extra])[0])
        for value in new:
            body.output(value)
    out = writer.op("Loop", None, first, *carried, outputs=len(carried), body=body.graph("body"))
    return [out] if len(carried) == 1 else out


def map_(work: Any, function: Any, values: Any, extra: Any = ()) -> list[str]:
    with _BodyWriter(work) as body:
        slices = [body.input("slice", v.dtype, v.sizes[1:]) for v in values]
        found = body.run(function, [*slices, *extra])
        for value in found:
            body.output(value)
    out = work.writer.op("Scan", *values, outputs=len(found), body=body.graph("body"), num_scan_inputs=len(values))
    return [out] if len(found) == 1 else out


def scan(work: Any, function: Any, init: Any, values: Any, extra: Any = ()) -> list[str]:
    with _BodyWriter(work) as body:
        state = [body.input("state", v.dtype, v.sizes) for v in init]
        slices = [body.input("slice", v.dtype, v.sizes[1:]) for v in values]
        found = body.run(function, [*state, *slices, *extra])
        for value in found:
            body.output(value)
    return work.writer.op(
        "Scan", *init, *values, outputs=max(len(found), 1), body=body.graph("body"), num_scan_inputs=len(values)
    )


def with_grad_mode(work: Any, enabled: bool, module: Any, *values: Any) -> list[Any]:
    return _InlineWriter(work).run(module, list(values))


def with_autocast(
    work: Any, device: str, dtype: Any, enabled: bool, cache: Any, module: Any, *values: Any
) -> list[Any]:
    if enabled:
        raise OnnxExporterError("autocast inside the program: export it without")
    return _InlineWriter(work).run(module, list(values))


HIGHER: dict[str, Callable] = {
    "cond": cond, "while_loop": while_loop, "map_impl": map_, "map": map_, "scan": scan,
    "wrap_with_set_grad_enabled": with_grad_mode, "wrap_with_autocast": with_autocast,
}  # fmt: skip
