"""`torch._dynamo.explain`: reports the graph of a call, or why it has none."""

from __future__ import annotations

import dataclasses
import linecache
import traceback
from typing import Any


@dataclasses.dataclass
class GraphCompileReason:
    """Reason and source line of a graph break."""

    reason: str
    user_stack: list[traceback.FrameSummary]
    graph_break: bool = True


@dataclasses.dataclass
class ExplainOutput:
    """Result of `explain`: the graphs between the breaks of a function."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[Any]] | None = None
    out_guards: list[Any] | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]  # fmt: skip
        for i, found in enumerate(self.break_reasons):
            lines += [f"  Break Reason {i + 1}:", f"    Reason: {found.reason}", "    User Stack:"]
            lines += [f"      {line}" for line in found.user_stack]
        lines.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph or ()):
            lines += [f"  Ops {i + 1}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines) + "\n"


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Return a function that calls `f` once and returns an `ExplainOutput` with its graph, or the reason and line of
    the graph break.

    >>> def f(x):
    ...     return (x * 2).relu()
    >>> found = torchlite._dynamo.explain(f)(torchlite.ones(2))
    >>> found.graph_count, found.graph_break_count, found.op_count
    (1, 0, 2)
    """

    def call_and_explain(*args: Any, **kwargs: Any) -> ExplainOutput:
        from .custom_backend import GraphCompiledFunction
        from .eval_frame import innermost_fn
        from .flatten_args import callable_name

        function = innermost_fn(f)
        frame = GraphCompiledFunction(function, callable_name(function), lambda graph, inputs: graph.forward)
        frame.warns = False  # the output contains the reasons
        frame(*args, **kwargs)
        ops = [[n.target for n in graph.graph.nodes if n.op.startswith("call_")] for graph in frame.graphs]
        if frame.tree is None:
            reasons = [GraphCompileReason(reason, _source_line(reason)) for reason in frame.reasons]
        else:
            found = [b for b in frame.tree.breaks if not any(map(b.has_operand, frame.tree.breaks))]
            reasons = [GraphCompileReason(f"{b.reason} ({b.place})", _source_line(f" ({b.place})")) for b in found]
        breaks = len(ops) - 1 if ops else len(reasons)
        return ExplainOutput(frame.graphs, len(ops), breaks, reasons, sum(map(len, ops)), ops, [], "")

    return call_and_explain(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else call_and_explain


def _source_line(reason: str) -> list[traceback.FrameSummary]:
    """Return the source line named at the end of a reason."""
    place = reason.rpartition(" (")[2].rstrip(")")
    path, _, number = place.rpartition(":")
    if not path or not number.isdigit():
        return []
    return [traceback.FrameSummary(path, int(number), "", line=linecache.getline(path, int(number)).strip())]
