"""`torch.export.export`'s driver: traces a module, and retraces it with other sizes to validate dynamic shapes."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite._symbolic_shapes import Expr
from torchlite.fx import GraphModule, Node
from torchlite.fx._node_source import NodeSource, NodeSourceAction
from torchlite.fx.experimental._size_expression_fitting import GraphMerger, NoExpressionError
from torchlite.fx.experimental._unbacked_symbols import Guard
from torchlite.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torchlite.utils import _pytree as pytree

from ..fx._dead_code import eliminate_unused
from . import dynamic_shapes as ds
from ._capture import CapturedTensors, ExportTrace, argument_names
from ._dynamic_sizes import DynamicSizes
from ._errors import UserError
from ._input_guards import format_guard, guards_code
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ConstantArgument, ExportGraphSignature, SymIntArgument


def export_program(
    mod: Any, args: tuple, kwargs: dict, shapes: Any, preserved: tuple[str, ...] = ()
) -> ExportedProgram:
    """Return the exported program of a module for these arguments."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    varying = DynamicSizes(leaves, ds.dims_per_leaf(mod, args, kwargs, shapes))
    varying.preserved, varying.captured = preserved, CapturedTensors(mod)
    trace = _trace_once(mod, varying, spec, {})
    varying.found(trace)
    varying.guards = trace.unbacked.guards
    if varying.hints:
        trace = _insert_sizes(mod, trace, varying, spec)
    for name, (low, high) in trace.unbacked.ranges.items():
        varying.ranges[name] = ds.ValueRanges(low, high)
    return _make_program(mod, trace, varying, args, kwargs)


def specialized_sizes(mod: Any, args: tuple, kwargs: dict, dims: list[set[int]]) -> list[tuple[int, int]]:
    """Return the sizes of arguments that a module decides on so that no other one runs the same ops: pairs of a leaf's
    number and a dimension. dims: the dimensions to look at, by leaf.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    varying, every = [DynamicSizes(leaves, [dict.fromkeys(sorted(one), ds.Dim.AUTO) for one in dims]) for _ in "ab"]
    varying.captured = every.captured = CapturedTensors(mod)
    trace = _trace_once(mod, varying, spec, {})
    varying.found(trace)
    varying.guards = every.guards = trace.unbacked.guards
    _resolve_constraints(mod, trace, varying, spec)

    def holds_for_another(place: tuple[int, int]) -> bool:
        name, size = every.places[place][0], leaves[place[0]].shape[place[1]]
        others = [n for n in (2 * size, 3 * size) if every.fits({**every.hints, name: n})]
        return any(
            _why_not_same_program(mod, trace, every, spec, {**every.hints, name: other}) is None for other in others
        )

    return [place for place in every.places if place not in varying.places and not holds_for_another(place)]


def _trace_once(
    mod: Any, varying: DynamicSizes, spec: Any, sizes: dict[str, int], known_sizes: Any = None
) -> ExportTrace:
    args, kwargs = pytree.tree_unflatten(varying.inputs({**varying.hints, **sizes}), spec)
    return ExportTrace(
        mod, args, kwargs, preserved=varying.preserved, sizes=sizes, known_sizes=known_sizes,
        places=varying.expressions(), bounds=varying.bounds(), captured=varying.captured,
    )  # fmt: skip


def _resolve_constraints(mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any) -> None:
    """Find sizes that must be equal and sizes that must be constant."""
    for name in list(varying.hints):
        if name not in varying.hints:
            continue
        if name in varying.elements:
            _resolve_unbacked_symbol(mod, trace, varying, spec, name)
            continue
        others = varying.others(name)
        sizes = {**varying.hints, name: next(iter(others), varying.hints[name] + 1)}
        problem = (
            _why_not_same_program(mod, trace, varying, spec, sizes) if others else _make_specialize_error(varying, name)
        )
        if problem is None:
            continue
        if varying.shown(name) == name:
            equal = _find_equal_sizes(mod, trace, varying, spec, name, sizes)
            if equal:
                problem = None
                for other in [name, *equal[1:]]:
                    varying.unite(other, equal[0])
        if problem is None:
            continue
        if name in varying.free:
            varying.drop(name)
            continue
        shown = varying.shown(name)
        if not others and any(g.name == "eq" for g in varying.guards):
            raise UserError(
                f'Constraints violated ({shown})! For more information, run with TORCH_LOGS="+dynamic".\n  - You '
                f"marked {shown} as dynamic but your code specialized it to be a constant ({varying.hints[name]}). If "
                "you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, "
                f"replace it with either Dim.STATIC or Dim.AUTO.\nSuggested fixes:\n  {shown} = {varying.hints[name]}"
            )
        raise UserError(
            f'Constraints violated ({shown})! For more information, run with TORCH_LOGS="+dynamic".\n  - Not all '
            f"values of {shown} in the specified range are valid because the program with the size "
            f"{sizes[name]} is another one than with {varying.hints[name]}: {problem}\nSuggested fixes:\n  "
            f"{shown} = {varying.hints[name]}"
        )


def _find_equal_sizes(
    mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any, name: str, sizes: dict[str, int]
) -> list[str]:
    """Return the sizes that must equal a size, none if it must be constant."""

    def program_is_unchanged(names: list[str]) -> bool:
        return _why_not_same_program(mod, trace, varying, spec, {**sizes, **dict.fromkeys(names, sizes[name])}) is None

    found = [n for n in varying.hints if n != name and varying.hints[n] == varying.hints[name]]
    for other in found:
        if program_is_unchanged([other]):
            return [other]
    if len(found) < 2 or not program_is_unchanged(found):
        return []
    for other in list(found):
        fewer = [n for n in found if n != other]
        if program_is_unchanged(fewer):
            found = fewer
    return found


def _make_specialize_error(varying: DynamicSizes, name: str) -> str:
    places = [g.place for g in varying.guards if name in g.difference.free_symbols]
    if not places:
        raise UserError(f"the range of {varying.shown(name)} has no size but {varying.hints[name]} that can be tried")
    return "no other size is taken the same way at " + " and ".join(dict.fromkeys(places))


def _resolve_unbacked_symbol(mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any, name: str) -> None:
    """Find example values of an unbacked symbol; without any, the traced value stays."""
    hint = varying.hints[name]
    low, high = varying.ranges[name]
    others = [hint + d for d in (-1, 1, -2, 2, 3, 5) if max(low, min(hint, 1)) <= hint + d <= high]
    for value in others:
        problem = _why_not_same_program(mod, trace, varying, spec, {**varying.hints, name: value})
        if problem is not None and problem.startswith("it calls"):
            raise GuardOnDataDependentSymNode(
                f"Could not guard on data-dependent expression {name} == {hint}: with {value} {problem}"
            )
        if problem is None:
            varying.elements[name].append(value)
            if len(varying.elements[name]) == 3:
                break
    if not varying.elements[name]:
        varying.drop(name)


def _why_not_same_program(
    mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any, sizes: dict[str, int]
) -> str | None:
    """Return why the program differs at other sizes, None if it is equal."""
    try:
        other = _trace_once(mod, varying, spec, sizes)
    except (RuntimeError, ValueError, IndexError, AssertionError, TypeError) as error:
        return str(error)
    mine, theirs = list(trace.graph.nodes), list(other.graph.nodes)
    for a, b in zip(mine, theirs, strict=False):
        if a.op != "placeholder" and (a.op != b.op or a.target != b.target):
            where = a.meta.get("stack_trace", "").splitlines()[-2:]
            return f"it calls {a.target} or {b.target}\n" + "\n".join(where)
    return None if len(mine) == len(theirs) else "it calls more ops"


def _insert_sizes(mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any) -> ExportTrace:
    _resolve_constraints(mod, trace, varying, spec)
    if not varying.hints:
        return trace
    base = varying.hints
    rows = [dict(base), *({**base, name: varying.others(name)[0]} for name in base)]
    rows += list(varying.together(smaller=False))[: 2 if len(base) > 1 else 3]
    traces = [_trace_once(mod, varying, spec, row) for row in rows]
    for row in list(varying.together(smaller=True))[:1]:
        smaller = _try_trace(mod, traces[0], varying, spec, row)
        if smaller is not None:
            rows, traces = [*rows, row], [*traces, smaller]
    try:
        found_sizes = _merge_traces(traces, varying, rows).found
        traces = [_trace_once(mod, varying, spec, row, found_sizes) for row in rows]
        _apply_guards(_merge_traces(traces, varying, rows), traces[0], varying)
    except NoExpressionError as error:
        names = ", ".join(map(varying.shown, base))
        raise UserError(
            f'Constraints violated ({names})! For more information, run with TORCH_LOGS="+dynamic".\n  - {error}'
        ) from None
    return traces[0]


def _merge_traces(traces: list[ExportTrace], varying: DynamicSizes, rows: list[dict[str, int]]) -> GraphMerger:
    held = [list(t.constants.values()) for t in traces]
    for same in zip(*held, strict=False):
        if any(one.shape != same[0].shape or not torch.equal(one, same[0]) for one in same[1:]):
            raise NoExpressionError("a tensor that the program makes without an op is another one for other sizes")
    made = GraphMerger([t.graph for t in traces], rows, dict(traces[0].unbacked.sources))
    made.run()
    return made


def _apply_guards(merged: GraphMerger, trace: ExportTrace, varying: DynamicSizes) -> None:
    """Apply the program's guards: narrow ranges or add guards. Raise UserError if a named Dim's range violates one."""
    found: dict[tuple[str, Expr], Guard] = {}
    for guard in trace.unbacked.guards:
        difference = guard.difference.replaced(merged.own)
        if not difference.is_number and difference.free_symbols <= set(varying.places_of()):
            found.setdefault((guard.name, difference), Guard(guard.name, difference, guard.place))
    varying.guards = []
    for guard in found.values():
        narrowed = varying.narrowed(guard)
        if narrowed is not None and narrowed[1] == varying.ranges[narrowed[0]]:
            continue
        named = [n for n in guard.difference.free_symbols if varying.shown(n) != n]
        if named:
            raise _make_constraint_violation(varying, guard, named[0], narrowed)
        if narrowed is not None:
            varying.ranges[narrowed[0]] = narrowed[1]
        varying.guards.append(guard)


def _make_constraint_violation(varying: DynamicSizes, guard: Guard, name: str, narrowed: Any) -> UserError:
    shown, path = varying.shown(name), f"the size of {varying.shown(name)}"
    if narrowed is not None:
        low, high = narrowed[1]
        limits = [f"min={low}"] * (low > varying.ranges[name].lower) + [f"max={high}"] * (high < math.inf)
        why = f"{low} <= {shown} and {shown} <= {'IntInfinity()' if high == math.inf else high}"
        fix = f"\nSuggested fixes:\n  {shown} = Dim('{shown}', {', '.join(limits)})"
    else:
        why, fix = format_guard(guard, {n: varying.shown(n) for n in guard.difference.free_symbols}), ""
    return UserError(
        f'Constraints violated ({shown})! For more information, run with TORCH_LOGS="+dynamic".\n  - Not all values of '
        f"{shown} = {path} in the specified range satisfy the generated guard {why}\nIt is taken at {guard.place}{fix}"
    )


def _try_trace(
    mod: Any, trace: ExportTrace, varying: DynamicSizes, spec: Any, row: dict[str, int]
) -> ExportTrace | None:
    """Trace with other sizes; the trace may differ."""
    return (
        _trace_once(mod, varying, spec, row) if _why_not_same_program(mod, trace, varying, spec, row) is None else None
    )


def _make_program(mod: Any, trace: ExportTrace, varying: DynamicSizes, args: tuple, kwargs: dict) -> ExportedProgram:
    eliminate_unused(trace.graph, trace.calls.kept())
    for spec, result in zip(trace.output_specs, trace.graph.output_node().args[0], strict=True):  # type: ignore[arg-type]
        if isinstance(result, Node) and isinstance(spec.arg, ConstantArgument):
            spec.arg = SymIntArgument(result.name)
    with torch.no_grad():  # the run that the program was made of is the first one
        for tensor, value in trace.written:
            tensor.copy_(value)
    for node in trace.graph.nodes:
        if node.op == "call_function" and "from_node" not in node.meta:
            node.meta["from_node"] = [NodeSource(node, "export", NodeSourceAction.CREATE)]
    root = torch.nn.Module()
    for name, module in trace.recorder.modules.items():
        root.add_module(name, module)
    parameters = dict(mod.named_parameters(remove_duplicate=False))
    buffers = dict(mod.named_buffers(remove_duplicate=False))
    signature = ExportGraphSignature(trace.input_specs, trace.output_specs)
    off = set(signature.non_persistent_buffers)
    names = argument_names(mod, args, kwargs)
    call = ModuleCallSignature([], [], trace.in_spec, trace.out_spec, names)
    program = ExportedProgram(
        root=GraphModule(root, trace.graph),
        graph=trace.graph,
        graph_signature=signature,
        state_dict={name: value for name, value in {**parameters, **buffers}.items() if name not in off},
        range_constraints=dict(varying.ranges),
        module_call_graph=[ModuleCallEntry("", call), *trace.calls.entries()],
        example_inputs=(args, kwargs),
        constants={**trace.constants, **{name: buffers[name] for name in off}},
    )
    program._guards = [(guard.name, guard.difference) for guard in varying.guards]
    program._guards_code = guards_code(program)
    return program
