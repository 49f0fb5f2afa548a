"""`torch.export.export`: a module is traced once, and with other sizes where some vary."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torchlite as torch
from torchlite.fx import GraphModule, Node
from torchlite.fx.experimental._merging import Merged, Unsolved
from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode
from torchlite.utils import _pytree as pytree

from . import dynamic_shapes as ds
from ._capture import Trace, _without_unused, argument_names
from ._errors import UserError
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ConstantArgument, ExportGraphSignature, SymIntArgument


class Varying:
    """The sizes that vary: by a symbol's name where it is read, its range, and which dimensions depend on it."""

    def __init__(self, leaves: list[Any], said: list[dict[int, Any]]) -> None:
        self.leaves = leaves
        self.preserved: tuple[str, ...] = ()
        self.ranges: dict[str, ds.ValueRanges] = {}
        self.hints: dict[str, int] = {}
        self.places: dict[tuple[int, int], tuple[str, int, int]] = {}  # symbol, factor, offset
        self.named: dict[str, str] = {}  # by a Dim's name the symbol
        self.elements: dict[str, list[int]] = {}  # by symbols of elements, the numbers that they may have in a trace
        self.free: set[str] = set()  # symbols that may turn out to be constant
        numbers = itertools.count()
        for leaf, dims in enumerate(said):
            for dim, one in dims.items():
                self._add(leaf, dim, one, numbers)

    def _add(self, leaf: int, dim: int, one: Any, numbers: Any) -> None:
        size = self.leaves[leaf].shape[dim]
        if isinstance(one, ds.Dim):
            root = one.root or one
            base, rest = divmod(size - one.offset, one.factor)
            if rest or base < 0:
                raise UserError(f"Expected size {size} of dimension {dim} to be {one.__name__}")
            name = self.named.get(root.__name__)
            if name is None:
                name = self.named[root.__name__] = f"s{next(numbers)}"
                self.hints[name], self.ranges[name] = base, ds.ValueRanges(root.min, root.max)
                if not root.min <= base <= root.max:
                    raise ConstraintViolationError(
                        f"{base} not in range [{root.min}, {'int_oo' if root.max == math.inf else root.max}]"
                    )
            if self.hints[name] != base:
                raise UserError(
                    f'Constraints violated ({root.__name__})! For more information, run with TORCH_LOGS="+dynamic".\n'
                    f"  - The values of {root.__name__} must be equal, but were {self.hints[name]} and {base}."
                )
            self.places[leaf, dim] = (name, one.factor, one.offset)
            return
        name = f"s{next(numbers)}"
        if one.type == "AUTO" and size < 2:
            return
        low, high = 0 if one.min is None else one.min, math.inf if one.max is None else one.max
        self.hints[name], self.ranges[name] = size, ds.ValueRanges(low, high)
        if one.type == "AUTO":
            self.free.add(name)
        self.places[leaf, dim] = (name, 1, 0)

    def inputs(self, sizes: dict[str, int]) -> list[Any]:
        """The arguments with other sizes: parts of them, repeated."""
        found = []
        for number, leaf in enumerate(self.leaves):
            for (place, dim), (name, factor, offset) in self.places.items():
                wanted = sizes[name] * factor + offset
                if place == number and wanted != leaf.shape[dim]:
                    rows = torch.arange(wanted, device=leaf.device) % max(1, leaf.shape[dim])
                    leaf = leaf.detach().index_select(dim, rows).requires_grad_(leaf.requires_grad)
            found.append(leaf)
        return found

    def found(self, trace: Trace) -> None:
        """Numbers that depend on elements vary too."""
        for name, hint in trace.unbacked.hints.items():
            low, high = trace.unbacked.ranges[name]
            self.hints[name], self.ranges[name] = hint, ds.ValueRanges(low, high)
            self.elements[name] = []

    def other(self, name: str, step: int) -> int:
        """Another size for a symbol, within its range."""
        low, high = self.ranges[name]
        hint = self.hints[name]
        if name in self.elements:
            return self.elements[name][step % len(self.elements[name])]
        for size in (hint + step, hint + 2 * step, hint + 1, hint - 1, hint + 2, hint - 2):
            if max(low, 2) <= size <= high and size != hint:
                return size
        raise UserError(f"the range of {self.shown(name)} has no size but {hint} that can be tried")

    def shown(self, name: str) -> str:
        """What a program calls a symbol."""
        return next((own for own, symbol in self.named.items() if symbol == name), name)

    def drop(self, name: str) -> None:
        """Have a size be constant."""
        for table in (self.ranges, self.hints):
            table.pop(name, None)
        self.places = {where: what for where, what in self.places.items() if what[0] != name}

    def unite(self, name: str, other: str) -> None:
        """Have two sizes be one."""
        self.places = {where: ((other, *what[1:]) if what[0] == name else what) for where, what in self.places.items()}
        a, b = self.ranges[name], self.ranges[other]
        self.ranges[other] = ds.ValueRanges(max(a.lower, b.lower), min(a.upper, b.upper))
        for table in (self.ranges, self.hints):
            table.pop(name, None)


def exported(mod: Any, args: tuple, kwargs: dict, shapes: Any, preserved: tuple[str, ...] = ()) -> ExportedProgram:
    """The program of a module for these arguments."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    varying = Varying(leaves, ds.per_leaf(mod, args, kwargs, shapes))
    varying.preserved = preserved
    trace = Trace(mod, args, kwargs, preserved=preserved)
    varying.found(trace)
    if varying.hints:
        trace = _with_sizes(mod, trace, varying, spec)
    for name, (low, high) in trace.unbacked.ranges.items():
        varying.ranges[name] = ds.ValueRanges(low, high)
    return _program(mod, trace, varying, args, kwargs)


def _traced(mod: Any, varying: Varying, spec: Any, sizes: dict[str, int]) -> Trace:
    args, kwargs = pytree.tree_unflatten(varying.inputs(sizes), spec)
    return Trace(mod, args, kwargs, preserved=varying.preserved, sizes=sizes)


def _settled(mod: Any, trace: Trace, varying: Varying, spec: Any) -> None:
    """Find the sizes that have to be equal, and those that have to be constant."""
    for name in list(varying.hints):
        if name not in varying.hints:
            continue
        if name in varying.elements:
            _settled_of_elements(mod, trace, varying, spec, name)
            continue
        sizes = {**varying.hints, name: varying.other(name, 3)}
        problem = _problem(mod, trace, varying, spec, sizes)
        if problem is None:
            continue
        if varying.shown(name) == name:
            for other in [n for n in varying.hints if n != name and varying.hints[n] == varying.hints[name]]:
                both = {**sizes, other: sizes[name]}
                if _problem(mod, trace, varying, spec, both) is None:
                    varying.unite(name, other)
                    problem = None
                    break
        if problem is None:
            continue
        if name in varying.free:
            varying.drop(name)
            continue
        shown = varying.shown(name)
        raise UserError(
            f'Constraints violated ({shown})! For more information, run with TORCH_LOGS="+dynamic".\n  - Not all '
            f"values of {shown} in the specified range are valid because the program with the size "
            f"{sizes[name]} is another one than with {varying.hints[name]}: {problem}\nSuggested fixes:\n  "
            f"{shown} = {varying.hints[name]}"
        )


def _settled_of_elements(mod: Any, trace: Trace, varying: Varying, spec: Any, name: str) -> None:
    """Find numbers that a number of elements can have in a trace; where there is none it stays what the nodes say."""
    hint = varying.hints[name]
    low, high = varying.ranges[name]
    others = [hint + d for d in (-1, 1, -2, 2, 3, 5) if max(low, min(hint, 1)) <= hint + d <= high]
    for value in others:
        problem = _problem(mod, trace, varying, spec, {**varying.hints, name: value})
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


def _problem(mod: Any, trace: Trace, varying: Varying, spec: Any, sizes: dict[str, int]) -> str | None:
    """What is wrong with the program at other sizes; None where it is the same."""
    try:
        other = _traced(mod, varying, spec, sizes)
    except (RuntimeError, ValueError, IndexError, AssertionError, TypeError) as error:
        return str(error)
    mine, theirs = list(trace.graph.nodes), list(other.graph.nodes)
    for a, b in zip(mine, theirs, strict=False):
        if a.op != "placeholder" and (a.op != b.op or a.target != b.target):
            where = a.meta.get("stack_trace", "").splitlines()[-2:]
            return f"it calls {a.target} or {b.target}\n" + "\n".join(where)
    return None if len(mine) == len(theirs) else "it calls more ops"


def _with_sizes(mod: Any, trace: Trace, varying: Varying, spec: Any) -> Trace:
    _settled(mod, trace, varying, spec)
    if not varying.hints:
        return trace
    base = varying.hints
    rows = [dict(base)]
    for name in base:
        rows.append({**base, name: varying.other(name, 3)})
    if len(base) == 1:
        rows.append({name: varying.other(name, 4) for name in base})
    rows.append({name: varying.other(name, 5 + 2 * i) for i, name in enumerate(base)})
    traces = [trace, *(_traced(mod, varying, spec, row) for row in rows[1:])]
    users = [n for n in trace.graph.nodes if n.op == "placeholder"][-len(varying.leaves) :]
    sources: dict[str, tuple[Node, int | None]] = dict(trace.unbacked.sources)
    for (leaf, dim), (name, factor, offset) in sorted(varying.places.items()):
        if (factor, offset) == (1, 0):
            sources.setdefault(name, (users[leaf], dim))
    for name in base:
        if name not in sources:
            raise UserError(f"no argument has the size {varying.shown(name)} itself")
    try:
        Merged([t.graph for t in traces], rows, sources).run()
    except Unsolved as error:
        names = ", ".join(map(varying.shown, base))
        raise UserError(
            f'Constraints violated ({names})! For more information, run with TORCH_LOGS="+dynamic".\n  - {error}'
        ) from None
    return trace


def _program(mod: Any, trace: Trace, varying: Varying, args: tuple, kwargs: dict) -> ExportedProgram:
    _without_unused(trace.graph, trace.calls.kept())
    for spec, result in zip(trace.output_specs, trace.graph.output_node().args[0], strict=True):  # type: ignore[arg-type]
        if isinstance(result, Node) and isinstance(spec.arg, ConstantArgument):
            spec.arg = SymIntArgument(result.name)
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
    return program
