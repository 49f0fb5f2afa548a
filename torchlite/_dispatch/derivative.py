"""What a record's derivative formulas need, and the backward function made from them."""

from __future__ import annotations

from collections.abc import Callable

from .record import Formula, Op, Param
from .source import Listing, Piece, Source, compile_source, joined, tuple_of


class Plan:
    """What an op's derivative needs, worked out from its formulas' parameter names."""

    def __init__(self, op: Op):
        names = {p.name: p for p in op.params}
        self.keeps: set[int] = set()
        users: dict[tuple[str, str], set] = {}
        for formula in op.formulas:
            for target in formula.targets:
                if target not in names:
                    raise RuntimeError(f"op {op.name}: a formula for '{target}', which is no argument")
            for need in formula.needs:
                key = _saved_key(need, names)
                if _is_output(need):
                    self.keeps.add(int(need[3:] or 0))
                elif key is not None:
                    users.setdefault(key, set()).update(formula.targets)
                elif need != "needs":
                    raise RuntimeError(f"op {op.name}: a formula needs '{need}', which is no argument or output")
        # An input's shape that only its own formula needs is known at its edge.
        self.shapes = [
            name
            for (name, kind), who in users.items()
            if kind == "shape" and who == {name} and names[name].kind != "list"
        ]
        self.saves: list[tuple[str, str, frozenset]] = [
            (name, kind, frozenset(who))
            for (name, kind), who in users.items()
            if kind != "shape" or name not in self.shapes
        ]
        first = op.params[0].name if op.params else ""
        self.touches_target = bool(self.keeps) or (first, "value") in users or not op.formulas


def _is_output(need: str) -> bool:
    return need == "out" or need[:3] == "out" and need[3:].isdigit()


def _saved_key(need: str, names: dict[str, Param]) -> tuple[str, str] | None:
    """The argument that a formula's parameter names, and what of it: value (of a tensor), plain, shape or dtype."""
    if need in names:
        return need, "value" if names[need].is_tensor else "plain"
    for suffix in ("shape", "dtype"):
        if need.endswith("_" + suffix) and need[: -len(suffix) - 1] in names:
            return need[: -len(suffix) - 1], suffix
    return None


def backward_function(op: Op) -> Callable:
    """`backward(F, g, node, get, get_out)` -> one gradient (or tuple of them) a tensor argument."""
    if op._backward is None:
        constants = {f"{op.name}__vjp{i}": formula.function for i, formula in enumerate(op.formulas)}
        op._backward = compile_source(op, "backward", backward_text(op), constants, "backward")
    return op._backward


def backward_text(op: Op) -> str:
    """The text of an op's backward function."""
    source = Source()
    with source.block("def backward(F, g, node, get, get_out):"):
        source.line("edges, saved, versions = node.edges, node.saved, node.versions")
        source.comment("Backward lets go of what a node saved: it runs once, unless told to retain the graph.")
        with source.block("if saved is None:"):
            source.line("freed(node)")
        _write_needed(source, op)
        gradients = _write_formulas(source, op)
        source.comment("A gradient for each tensor argument.")
        source.write(tuple_of([gradients.get(p.name, "None") for p in op.tensor_params], "return "))
    return source.text()


def _write_needed(source: Source, op: Op) -> None:
    """Bring what the formulas need into local variables."""
    plan = op.plan
    if plan.saves:
        source.comment("What the node saved; `get` refuses a tensor that was changed since.")
    for i, (name, kind, _) in enumerate(plan.saves):
        value = f"get(saved[{i}], versions[{i}], node, {i})" if kind == "value" else f"saved[{i}]"
        source.line(f"{_local(name, kind)} = {value}")
    if plan.shapes:
        source.comment("An input's shape is known where its gradient goes.")
    for name in plan.shapes:
        source.line(f"{_local(name, 'shape')} = shape_of(edges[{_position(op, name)}])")
    if plan.keeps:
        source.comment("The outputs.")
    for i in sorted(plan.keeps):
        source.line(f"{_output(op, i)} = get_out(node, {i})")


def _local(name: str, kind: str) -> str:
    """The local variable of a saved value: `input_`, `input_shape_`, `input_dtype_`."""
    return f"{name}_{kind}_" if kind in ("shape", "dtype") else f"{name}_"


def _output(op: Op, index: int) -> str:
    return f"out{index}_" if op.hidden or op.outputs or op.several else "out_"


def _position(op: Op, name: str) -> int:
    return [p.name for p in op.tensor_params].index(name)


def _write_formulas(source: Source, op: Op) -> dict[str, str]:
    """Call the formulas of the inputs that want a gradient; the expression of each input's."""
    gradients: dict[str, str] = {}
    if op.formulas:
        source.comment("The formulas, each where a gradient of its is wanted.")
    for number, (key, formula) in enumerate(zip(op._vjp or (), op.formulas, strict=True)):
        call = Listing(f"{op.name}__vjp{number}(", ["F", "g", *_needs(op, formula)])
        wanted = joined([f"edges[{_position(op, name)}] is not None" for name in formula.targets], "or")
        if isinstance(key, str):
            result = gradients[key] = f"{key}_grad_"
            absent = "None"
        else:
            result, absent = f"grads{number}_", f"({'None, ' * len(key)})"
            gradients.update({name: f"{result}[{i}]" for i, name in enumerate(key)})
        source.expression(f"{result} = ", [call, ["if", *wanted], f"else {absent}"])
    return gradients


def _needs(op: Op, formula: Formula) -> list[Piece]:
    """What a formula is called with after `F, g`."""
    names = {p.name: p for p in op.params}
    arguments: list[Piece] = []
    for need in formula.needs:
        key = _saved_key(need, names)
        if need == "needs":
            arguments.append(tuple_of([_is_wanted(op, names[name]) for name in formula.targets]))
        elif _is_output(need):
            arguments.append(_output(op, int(need[3:] or 0)))
        else:
            assert key is not None  # the plan has checked it
            arguments.append(_local(*key))
    return arguments


def _is_wanted(op: Op, param: Param) -> str:
    """Whether an argument's gradient is wanted; of a list, whose elements'."""
    edge = f"edges[{_position(op, param.name)}]"
    if param.kind == "list":
        return f"{edge} is not None and tuple(each is not None for each in {edge})"
    return f"{edge} is not None"
