"""Generates the backward function from a record's derivative formulas."""

from __future__ import annotations

from collections.abc import Callable

from ..op_record import Formula, Op, Param
from ..saved_variable_analysis import is_output_name, parse_saved_name
from .source_builder import Listing, Piece, Source, compile_op, join_tests, tuple_literal


def backward_function(op: Op) -> Callable:
    """`backward(F, g, node, get, get_out, run_)` -> one gradient (or tuple of them) a tensor argument."""
    if op._backward is None:
        constants = {f"{op.name}__vjp{i}": formula.function for i, formula in enumerate(op.formulas)}
        op._backward = compile_op(op, "backward", lambda: backward_text(op), constants, "backward")
    return op._backward


def backward_text(op: Op) -> str:
    """The text of an op's backward function."""
    source = Source()
    with source.block("def backward(F, g, node, get, get_out, run_=None):"):
        source.line("edges, saved, versions = node._edges, node._saved, node._versions")
        source.comment("Backward lets go of what a node saved: it runs once, unless told to retain the graph.")
        with source.block("if saved is None:"):
            source.line("raise_freed_error(node)")
        _write_saved_values(source, op)
        gradients = _write_formulas(source, op)
        source.comment("A gradient for each tensor argument.")
        source.write(tuple_literal([gradients.get(p.name, "None") for p in op.tensor_params], "return "))
    return source.text()


def _write_saved_values(source: Source, op: Op) -> None:
    """Load the saved values that the formulas need into local variables."""
    plan = op.saved_variables
    if plan.saves:
        source.comment("What the node saved; `get` refuses a tensor that was changed since.")
    for i, (name, kind, _) in enumerate(plan.saves):
        value = f"get(saved[{i}], versions[{i}], node, {i})" if kind == "value" else f"saved[{i}]"
        source.line(f"{_local_name(name, kind)} = {value}")
    if plan.shapes:
        source.comment("An input's shape is known where its gradient goes.")
    for name in plan.shapes:
        source.line(f"{_local_name(name, 'shape')} = edge_shape(edges[{_output_position(op, name)}])")
    if plan.keeps:
        source.comment("The outputs.")
    everyone = {name for formula in op.formulas for name in formula.targets}
    for i, users in plan.keeps.items():
        edge_tests = [f"edges[{n}] is not None" for n, p in enumerate(op.tensor_params) if p.name in users]
        test = [] if users == everyone else ["if", *join_tests(edge_tests, "or"), "else None"]
        source.expression(f"{_output_expression(op, i)} = ", [f"get_out(node, {i})", *test])


def _local_name(name: str, kind: str) -> str:
    """The local variable of a saved value: `input_`, `input_shape_`, `input_dtype_`."""
    return f"{name}_{kind}_" if kind in ("shape", "dtype") else f"{name}_"


def _output_expression(op: Op, index: int) -> str:
    return f"out{index}_" if op.aux_outputs or op.outputs or op.multi_output else "out_"


def _output_position(op: Op, name: str) -> int:
    return [p.name for p in op.tensor_params].index(name)


def _write_formulas(source: Source, op: Op) -> dict[str, str]:
    """Call the formulas of the inputs that want a gradient; the expression of each input's."""
    gradients: dict[str, str] = {}
    if op.formulas:
        if any(map(_calls_kernels, op.formulas)):
            source.comment("Kernels run where NumPy is silent; over Tensors each op sees to that itself.")
            with source.block("if run_ is None:"):
                source.line("run_ = call_directly if F is OVER_TENSORS else quiet_run")
        source.comment("The formulas, each where a gradient of its is wanted.")
    for number, (key, formula) in enumerate(zip(op.vjp or (), op.formulas, strict=True)):
        called = f"{op.name}__vjp{number}"
        opening, first = ("run_(", [called]) if _calls_kernels(formula) else (f"{called}(", [])
        call = Listing(opening, [*first, "F", "g", *_formula_arguments(op, formula)])
        edge_tests = join_tests([f"edges[{_output_position(op, name)}] is not None" for name in formula.targets], "or")
        if isinstance(key, str):
            result = gradients[key] = f"{key}_grad_"
            absent = "None"
        else:
            result, absent = f"grads{number}_", f"({'None, ' * len(key)})"
            gradients.update({name: f"{result}[{i}]" for i, name in enumerate(key)})
        source.expression(f"{result} = ", [call, ["if", *edge_tests], f"else {absent}"])
    return gradients


def _calls_kernels(formula: Formula) -> bool:
    """Whether a formula uses more than its arguments: `lambda F, g: g` does not."""
    code = getattr(formula.function, "__code__", None)
    return code is None or bool(code.co_names or code.co_freevars)


def _formula_arguments(op: Op, formula: Formula) -> list[Piece]:
    """The arguments of a formula after `F, g`."""
    names = {p.name: p for p in op.params}
    arguments: list[Piece] = []
    for need in formula.needs:
        key = parse_saved_name(need, names)
        if need == "needs":
            arguments.append(tuple_literal([_needs_gradient_source(op, names[name]) for name in formula.targets]))
        elif is_output_name(need):
            arguments.append(_output_expression(op, int(need[3:] or 0)))
        else:
            assert key is not None  # the plan has checked it
            arguments.append(_local_name(*key))
    return arguments


def _needs_gradient_source(op: Op, param: Param) -> str:
    """Test that an argument's gradient is needed; for a list, the gradient of any element."""
    edge = f"edges[{_output_position(op, param.name)}]"
    if param.kind == "list":
        return f"{edge} is not None and tuple(each is not None for each in {edge})"
    return f"{edge} is not None"
