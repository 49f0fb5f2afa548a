"""Rules of control flow, sequences and functions of a file."""

from __future__ import annotations

import re
from typing import Any

from .._protobuf import Message
from .expressions import Constant, Sizes, Statement, UnwritableError, Value, Variable, literal_tuple
from .graph_reader import GraphReader, NodeArguments, call, live_statements, writes


def _body(w: GraphReader, graph: Message, given: list[Value]) -> tuple[GraphReader, list[Value]]:
    """Read a body whose inputs have values; return its reader and its results."""
    inner = GraphReader(w.opset, w.data, w)
    inner.scope = w.scope
    if len(graph.input) != len(given):
        raise UnwritableError(f"its body has {len(graph.input)} inputs, not {len(given)}")
    inner.initializers(graph)
    inner.values.update((item.name, value) for item, value in zip(graph.input, given, strict=True))
    inner.nodes(graph.node)
    return inner, [inner.value(item.name) for item in graph.output]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall("\x00([0-9]+)\x00", text)]


def _lines(inner: GraphReader, last: list[str]) -> tuple[list[str], list[int]]:
    """Return the indented lines of a body that ends with `last`, and the variables that it assigns."""
    kept = live_statements(inner.statements, set(_numbers("\n".join(last))))
    lines, numbers = [], []
    for statement in kept:
        numbers += [*statement.targets, *statement.inner]
        lines += [f"    {line}" for line in statement_lines(statement)]
    return [*lines, *(f"    {line}" for line in last)] or ["    pass"], numbers


def statement_lines(statement: Statement) -> list[str]:
    """Return the lines of a statement, with variables as tokens."""
    if statement.block:
        return statement.text.split("\n")
    targets = ", ".join(Variable(number).text for number in statement.targets)
    return [f"{targets} = {statement.text}"]


@writes("If")
def if_(w: GraphReader, n: NodeArguments) -> Any:
    branches = [n.graph(name) for name in ("then_branch", "else_branch")]
    chosen = n.constant(0)
    if chosen is not None:
        inner, results = _body(w, branches[0 if chosen.reshape(-1)[0] else 1], [])
        w.statements += inner.statements
        return results
    targets = [w.variable(f"branch_{i}" if len(n.outputs) > 1 else "branch") for i in range(len(n.outputs))]
    lines, numbers = [], []
    for head, branch in zip((f"if {n.text(0)}:", "else:"), branches, strict=True):
        inner, results = _body(w, branch, [])
        if len(results) < len(targets):
            raise UnwritableError(f"a branch has {len(results)} results, not {len(targets)}")
        last = [f"{target.text} = {inner.text(result)}" for target, result in zip(targets, results, strict=False)]
        body, found = _lines(inner, last)
        lines += [head, *body]
        numbers += found
    w.statements.append(Statement([t.number for t in targets], "\n".join(lines), w.scope, tuple(numbers), block=True))
    return list(targets)


def _initial(targets: list[Variable], texts: list[str]) -> list[str]:
    if not targets:
        return []
    return [f"{', '.join(target.text for target in targets)} = {', '.join(texts)}"]


@writes("Loop")
def loop(w: GraphReader, n: NodeArguments) -> Any:
    graph = n.graph("body")
    carried = n.inputs[2:]
    states = [w.variable("state") for _ in carried]
    step = w.variable("step")
    going = Constant(_true())
    inner, results = _body(w, graph, [Sizes((step.text,), True), going, *states])
    condition, updates, scanned = results[0], results[1 : 1 + len(states)], results[1 + len(states) :]
    lists = [w.variable("steps") for _ in scanned]
    outs = [w.variable("scanned") for _ in scanned]
    last = _initial(states, [inner.text(value) for value in updates])
    last = [*(f"{kept.text}.append({inner.text(value)})" for kept, value in zip(lists, scanned, strict=True)), *last]
    always = inner.array(condition)
    stops = always is None or not bool(always.reshape(-1)[0])
    if stops:  # the new state does not change the condition, which was computed before
        flag = w.variable("going")
        last = [f"{flag.text} = {inner.text(condition)}", *last, f"if not {flag.text}:", "    break"]
    body, numbers = _lines(inner, last)
    numbers += [step.number, *(v.number for v in lists), *([flag.number] if stops else [])]
    lines = _initial(states, [w.text(value) for value in carried if value is not None])
    lines += [f"{kept.text} = []" for kept in lists]
    head = f"for {step.text} in {f'range(int({n.text(0)}))' if n.has(0) else 'itertools.count()'}:"
    if n.has(1) and n.scalar(1) is not True:
        head = head.replace("range(int(", f"range(int(bool({n.text(1)}) and ") if n.has(0) else head
        if not n.has(0):
            head = f"for {step.text} in itertools.count() if {n.text(1)} else ():"
    lines += [head, *body]
    lines += [f"{out.text} = np.stack({kept.text})" for out, kept in zip(outs, lists, strict=True)]
    targets = [*states, *outs]
    w.statements.append(Statement([t.number for t in targets], "\n".join(lines), w.scope, tuple(numbers), block=True))
    return list(targets)


def _true() -> Any:
    import numpy as np

    return np.array(True)


# -- sequences: lists of Python


def _place(n: NodeArguments, place: int) -> str:
    number = n.scalar(place)
    return f"int({n.text(place)})" if number is None else str(int(number))


@writes("SequenceInsert")
def sequence_insert(w: GraphReader, n: NodeArguments) -> Any:
    if not n.has(2):
        return f"[*{n.text(0)}, {n.text(1)}]"
    at = _place(n, 2)
    return f"[*{n.text(0)}[:{at}], {n.text(1)}, *{n.text(0)}[{at}:]]"


@writes("SequenceAt")
def sequence_at(w: GraphReader, n: NodeArguments) -> Any:
    return f"{n.text(0)}[{_place(n, 1)}]"


@writes("SequenceLength")
def sequence_length(w: GraphReader, n: NodeArguments) -> Any:
    return Sizes((f"len({n.text(0)})",), True)


@writes("ConcatFromSequence")
def concat_from_sequence(w: GraphReader, n: NodeArguments) -> Any:
    function = "stack" if n.integer("new_axis", 0) else "concatenate"
    return f"np.{function}({n.text(0)}, axis={n.integer('axis', 0)})"


@writes("SplitToSequence")
def split_to_sequence(w: GraphReader, n: NodeArguments) -> Any:
    axis, x = n.integer("axis", 0), n.text(0)
    if not n.has(1):
        if n.integer("keepdims", 1):
            return f"np.split({x}, {x}.shape[{axis}], axis={axis})"
        return f"list(np.moveaxis({x}, {axis}, 0))"
    sizes = n.constant(1)
    if sizes is None:
        raise UnwritableError("its sizes are computed")
    if sizes.ndim:
        return call("split_axis", x, literal_tuple(sizes.tolist()), str(axis))
    return f"np.split({x}, range({int(sizes)}, {x}.shape[{axis}], {int(sizes)}), axis={axis})"
