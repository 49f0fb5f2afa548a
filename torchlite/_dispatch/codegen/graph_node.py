"""Generates the code that records an op: the node with its edges and the values that the derivative formulas need."""

from __future__ import annotations

from collections.abc import Sequence

from ..op_record import KEEPS_DTYPE, MAYBE_VIEW, NONDIFF, VIEW, Op, Param
from .source_builder import Listing, Piece, Source, join_tests, tuple_literal


class FastPathCase:
    """One case of the hot path: the arguments that are plain tensors, and the one that is a Python number."""

    def __init__(self, op: Op, tensors: Sequence[Param], number: str = ""):
        self.op, self.tensors, self.number = op, list(tensors), number
        # Tensors that may be None.
        self.optional = [p.name for p in self.tensors[1:] if p.kind == "optional" or p.default is None]


def write_node(source: Source, case: FastPathCase) -> None:
    """Make the result's node if an input wants a gradient."""
    source.comment("Record the op where an input wants a gradient and this thread records.")
    for p in case.tensors:
        absent = f"None if {p.name} is None else " if p.name in case.optional else ""
        source.line(f"{_write_node(p)} = {absent}{p.name}._tl_node")
    with source.condition("if", _write_node_condition(case)):
        _write_edges(source, case)
        _write_saved_inputs(source, case)
        _write_outputs(source, case)
        _write_node_fields(source)
        if case.number and (case.number == case.op.params[0].name or callable(case.op.node_name)):
            source.comment("PyTorch's name of the node tells which argument is a number.")
            first = case.number == case.op.params[0].name  # of a reflected operator alone
            source.line(f"node_._shown = {'REFLECTED' if first else repr(case.number)}")
    with source.block("else:"):
        source.line("result_._tl_node = None")
        write_unrecorded(source, case)


def write_unrecorded(source: Source, case: FastPathCase) -> None:
    """Write the code for an op that is not recorded: marks of no_grad views, inference mode and stale views."""
    op = case.op
    if op.tags & (VIEW | MAYBE_VIEW) and not op.tags & NONDIFF:
        source.comment("Without recording a view is marked as made so.")
        viewed = " and result_._tl_meta is not None" if op.tags & MAYBE_VIEW else ""
        with source.block(f"if NO_GRAD and not MODE.grad{viewed}:"):
            kind = "'inference' if MODE.inference else 'no_grad'"
            source.write(Listing("result_._tl_meta = (", ["result_._tl_meta[0]", "HISTORY_COUNTER", kind]))
            with source.block(f"if {_write_node(case.tensors[0])} is not None and result_.dtype.category >= 2:"):
                source.line("result_._tl_node = REQUIRES_GRAD_DETACHED")
    source.comment("Inference mode marks tensors, and the history of an input may have come late.")
    values = Listing("[", [p.name for p in op.params], "]")
    with source.block("if STALE_VIEW_CHECKS:"):
        hidden: list[Piece] = ["outs_[1:]"] if op.aux_outputs else []
        source.write(Listing("finish_unrecorded(", [f"{op.name}__op", "table_", values, "result_", *hidden], ")"))


def _write_node(p: Param) -> str:
    return f"{p.name}_node_"


def _write_node_condition(case: FastPathCase) -> list[Piece]:
    """The tests for whether to create a node. Only floating-point results have gradients."""
    op = case.op
    some = [f"{_write_node(p)} is not None" for p in case.tensors]
    if len(some) > 1:
        some[0], some[-1] = f"({some[0]}", f"{some[-1]})"
    tests: list[Piece] = [join_tests(some, "or"), "(not NO_GRAD or MODE.grad)"]
    if op.promote is None and not op.tags & (VIEW | KEEPS_DTYPE):
        tests.append("result_.dtype.category >= 2")
    return tests


def _write_edges(source: Source, case: FastPathCase) -> None:
    edges = [
        _refusal(case.op, p)
        if p.name in case.op.inputs_without_formula
        else _edge_expression(p, several=len(case.tensors) > 1)
        for p in case.tensors
    ]
    if case.number:
        names = [p.name for p in case.op.tensor_params]
        edges.insert(names.index(case.number), ["None"])
    source.line("result_._tl_node = node_ = Node()")
    source.line(f"node_._op = {case.op.name}__op")
    source.comment("Where each input's gradient goes: a leaf itself, or the node that made the input.")
    source.write(tuple_literal(edges, "node_._edges = "))


def _refusal(op: Op, p: Param) -> list[str]:
    """The edge of an input that has no derivative: none, or an error."""
    return [f"None if {_write_node(p)} is None", f"else refuse_gradient({op.name}__op, {p.name!r})"]


def _edge_expression(p: Param, several: bool) -> list[str]:
    """An input's edge; `edge` also renews the history of a view."""
    parts = [
        f"{p.name} if {_write_node(p)} is LEAF",
        f"else {_write_node(p)} if {p.name}._tl_meta is None",
        f"else gradient_edge({p.name})",
    ]
    return [f"None if {_write_node(p)} is None", f"else {parts[0]}", *parts[1:]] if several else parts


def _write_saved_inputs(source: Source, case: FastPathCase) -> None:
    saves = case.op.saved_variables.saves
    if saves:
        source.comment("What the formulas need, with the versions that tell later changes in place.")
    else:
        source.comment("The formulas need no argument.")
    source.write(
        tuple_literal([_saved_expression(case, name, kind, users) for name, kind, users in saves], "node_._saved = ")
    )
    source.write(
        tuple_literal(
            [_version_expression(case, name, kind, users) for name, kind, users in saves], "node_._versions = "
        )
    )


def _write_users_condition(case: FastPathCase, users: frozenset) -> str:
    """The test that a formula which needs the value is wanted."""
    return " or ".join(f"{_write_node(p)} is not None" for p in case.tensors if p.name in users)


def _belongs_to_scalar(case: FastPathCase, name: str, users: frozenset) -> bool:
    """True if a saved value is the Python number itself, or is needed only for the number's gradient, which does not
    exist.
    """
    return bool(case.number) and (name == case.number or not _write_users_condition(case, users))


def _saved_expression(case: FastPathCase, name: str, kind: str, users: frozenset) -> str:
    wanted = _write_users_condition(case, users)
    if _belongs_to_scalar(case, name, users):
        return "None" if not wanted or kind == "dtype" else "()" if kind == "shape" else name
    if kind in ("shape", "dtype"):
        value = f"{name}._tl_array.shape" if kind == "shape" else f"{name}.dtype"
        return f"None if {name} is None else {value}" if name in case.optional else value
    partly = kind == "value" and wanted and users != {p.name for p in case.tensors}
    return f"{name} if {wanted} else None" if partly else name


def _version_expression(case: FastPathCase, name: str, kind: str, users: frozenset) -> str:
    if kind != "value" or _belongs_to_scalar(case, name, users):
        return "0"
    absent = f"{name} is None or " if name in case.optional else ""
    return f"0 if {absent}{name}._tl_meta is None else version({name})"


def _write_outputs(source: Source, case: FastPathCase) -> None:
    """Write the raw outputs that formulas need. A node with a reference to its own result tensor would be a cycle."""
    every = ((i, _output_condition(case, users)) for i, users in case.op.saved_variables.keeps.items())
    tests = {i: test for i, test in every if test is not None}
    if not tests:
        _write_no_saved_outputs(source)
    elif "" in tests.values() or len(set(tests.values())) > 1:
        _write_saved_outputs(source, case, tests)
    else:
        with source.block(f"if {next(iter(tests.values()))}:"):
            _write_saved_outputs(source, case, dict.fromkeys(tests, ""))
        with source.block("else:"):
            _write_no_saved_outputs(source)


def _output_condition(case: FastPathCase, users: frozenset) -> str | None:
    """The test that an output is needed: "" if a node always needs it, None if it never does."""
    wanted = _write_users_condition(case, users)
    if not wanted:
        return None
    return "" if users >= {p.name for p in case.tensors} else wanted


def _write_no_saved_outputs(source: Source) -> None:
    source.comment("They need no output.")
    source.line("node_._out = node_._counter = None")


def _write_saved_outputs(source: Source, case: FastPathCase, tests: dict[int, str]) -> None:
    """Write the code that saves these outputs, each if its test is true."""
    op = case.op
    source.comment("The outputs that they need: raw, with the counter of their versions.")
    count = max(op.saved_variables.keeps) + 1 if op.aux_outputs else 1
    kept = [("data_" if i == 0 else f"outs_[{i}]") if i in tests else "None" for i in range(count)]
    source.write(
        tuple_literal(
            [f"{k} if {tests[i]} else None" if tests.get(i) else k for i, k in enumerate(kept)], "node_._out = "
        )
    )
    if 0 in tests:
        may_be_view = op.tags & (VIEW | MAYBE_VIEW) and not op.aux_outputs
        source.line("autograd_meta_of(result_)" if may_be_view else "result_._tl_meta = AutogradMeta()")
    counters = ["(result_._tl_meta, 0)" if i == 0 and i in tests else "None" for i in range(count)]
    source.write(tuple_literal(counters, "node_._counter = "))


def _write_node_fields(source: Source) -> None:
    source.comment("What backward asks of every node, and the number that says which was made later.")
    source.line("node_._shape = data_.shape")
    source.line("node_._tl_kernels = table_")
    source.line("node_._hooks = node_._trace = None")
    source.line("node_._seq = next(SEQUENCE)")
    source.comment("Anomaly detection keeps the place in the program.")
    with source.block("if NODE_CREATED_HOOK is not None:"):
        source.line("NODE_CREATED_HOOK(node_)")
