"""`ExportedProgram.run_decompositions`: retraces the program with decompositions and without mutation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torchlite as torch
from torchlite._aten.decompositions import find_decomposition, is_kept_as_one_op
from torchlite._device.generators import use_copied_generators
from torchlite._dispatch.mode_restoring import restores_modes
from torchlite._symbolic_shapes import Expr, SymInt, compare_by_name
from torchlite._types.checked_callable import CheckedCallable
from torchlite.fx import Graph, GraphModule, Node
from torchlite.fx.experimental._op_recorder import OpRecorder
from torchlite.fx.experimental._size_expression_fitting import GraphMerger
from torchlite.fx.experimental._unbacked_symbols import ITEM_OPS, UnbackedSymbols

from ..fx._dead_code import eliminate_unused
from . import graph_signature as gs
from ._checked_functions import make_checked_target
from ._functionalize import functionalize
from ._graph_codegen import implementation_of
from ._graph_runner import SIZE_QUERIES

# Batch norm's ATen op returns its running statistics.
_ALWAYS_DECOMPOSED = {
    torch.ops.aten.native_batch_norm.default: find_decomposition(torch.ops.aten.native_batch_norm.default)
}


def decompose_program(program: Any, table: Any) -> Any:
    """Return a program in decomposed, functional form."""
    rows = _SizeSamples(program, table)
    known_sizes: dict = {}
    if rows.names:
        rows.find()
        known_sizes = rows.merge_traces(known_sizes).found
    graph = (
        rows.merge_traces(known_sizes).graphs[0] if rows.names else _retrace_decomposed(program, table, rows.hints)[0]
    )
    eliminate_unused(graph, _values_to_keep(graph))
    made, changed = functionalize(graph)
    if any(isinstance(node.target, CheckedCallable) for node in program.graph.nodes):  # the program comes from a file
        for node in made.nodes:
            node.target = make_checked_target(node.target)
    return _make_program(program, made, changed)


class _SizeSamples:
    """Sample sizes for retracing a program."""

    def __init__(self, program: Any, table: Any) -> None:
        self.program, self.table = program, table
        self.hints = _size_hints(program)
        self.names = list(self.hints)
        self.rows: list[dict[str, int]] = [dict(self.hints)]
        self.error: Exception | None = None

    def find(self) -> None:
        """Choose rows where one size differs, and rows where all differ."""
        first = _find_op_targets(_retrace_decomposed(self.program, self.table, self.hints)[0])

        def add(changed: dict[str, int]) -> bool:
            row = {**self.hints, **changed}
            if row in self.rows or not all(compare_by_name(g, d.value(row), 0) for g, d in self.program._guards):
                return False
            try:
                if _find_op_targets(_retrace_decomposed(self.program, self.table, row)[0]) != first:
                    raise RuntimeError("run_decompositions: the program calls other ops for other sizes")
            except (RuntimeError, ValueError, IndexError) as error:
                self.error = error
                return False
            self.rows.append(row)
            return True

        moved = {}
        for name in self.names:
            others = _choose_other_sizes(self.hints[name], self.program.range_constraints.get(name))
            if any(add({name: value}) for value in others):
                moved[name] = others
            elif self.error is not None and not name.startswith("u"):
                raise self.error  # unbacked numbers may conflict with the samples
        for smaller, wanted in ((False, 2 if len(moved) > 1 else 3), (True, 1)):
            few = {n: [v for v in o if (v < self.hints[n]) == smaller] or o for n, o in moved.items()}
            turns = range(8 if few else 0)
            done = (add({n: o[(turn + i) % len(o)] for i, (n, o) in enumerate(few.items())}) for turn in turns)
            next(itertools.islice((True for one in done if one), wanted - 1, None), None)

    def merge_traces(self, known_sizes: dict) -> GraphMerger:
        """Return the program traced with all rows, merged."""
        traces = [_retrace_decomposed(self.program, self.table, row, known_sizes) for row in self.rows]
        made = GraphMerger([graph for graph, _ in traces], self.rows, dict(traces[0][1].sources))
        made.run()
        return made


def _find_op_targets(graph: Graph) -> list:
    return [node.target for node in graph.nodes if node.op == "call_function"]


def _size_hints(program: Any) -> dict[str, int]:
    """Return the symbols of a program's inputs with their traced sizes."""
    found: dict[str, int] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "call_function":
            found.update({name: hint for name, hint in [_find_unbacked_symbol(node)] if name is not None})
        elif node.op == "placeholder" and isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, SymInt) and len(size.node.expr.free_symbols) == 1:
                    expr, name = size.node.expr, next(iter(size.node.expr.free_symbols))
                    rest = expr.value({name: 0})
                    factor = expr.value({name: 1}) - rest
                    if expr == Expr.symbol(name) * factor + rest:
                        found[name] = (int(size) - rest) // factor
    return found


def _find_unbacked_symbol(node: Node) -> tuple[str | None, int]:
    """Return the unbacked symbol of a node's value or shape, and its hint."""
    value = node.meta.get("val")
    for size in value.shape if isinstance(value, torch.Tensor) else [value]:
        if isinstance(size, SymInt):
            names = size.node.expr.free_symbols
            name = next(iter(names))
            if len(names) == 1 and name.startswith("u") and size.node.expr == Expr.symbol(name):
                return name, int(size)
    return None, 0


def _choose_other_sizes(hint: int, ranged: Any) -> list[int]:
    low, high = (0, math.inf) if ranged is None else ranged
    sizes = [hint + d for d in (8, 3, 5, 12, 4, 1, 2, 6, 7, 16)] + [2 * hint, 3 * hint, hint // 2, hint - 1, hint - 2]
    return [size for size in dict.fromkeys(sizes) if max(2, low) <= size <= high and size != hint]


def _make_sample_tensor(value: Any, sizes: dict[str, int]) -> Any:
    """Return a sample tensor for a fake one: nonzero numbers, invertible matrices, valid indices."""
    shape = [n.node.expr.value(sizes) if isinstance(n, SymInt) else int(n) for n in value.shape]
    kind = value.dtype
    if not (kind.is_floating_point or kind.is_complex):
        return torch.zeros(shape, dtype=kind)
    made = torch.ones(shape, dtype=kind)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        made.diagonal(dim1=-2, dim2=-1).add_(shape[-1])
    return made.requires_grad_(value.requires_grad)


@restores_modes
def _retrace_decomposed(
    program: Any, table: Any, sizes: dict[str, int], known_sizes: Any = None
) -> tuple[Graph, UnbackedSymbols]:
    """Return the decomposed graph for these sizes, and its unbacked symbols."""
    graph = Graph()

    def unknown(tensor: Any) -> Node:
        raise RuntimeError("run_decompositions: a decomposition uses a tensor that is none of the program's")

    recorder = OpRecorder(graph, unknown, decompositions=_ALWAYS_DECOMPOSED | table)
    recorder.decomposing = True
    unbacked = recorder.unbacked = UnbackedSymbols(recorder, sizes)
    unbacked.known_sizes, unbacked.bounds = (
        known_sizes or {},
        {n: (low, high) for n, (low, high) in program.range_constraints.items()},
    )
    env: dict[Node, Any] = {}
    named = _values_in_call_signatures(program)
    try:
        with use_copied_generators():
            for node in program.graph.nodes:
                if node.op == "placeholder":
                    place = graph.placeholder(node.name)
                    place.name = node.name
                    place.meta.update(node.meta)
                    value = node.meta.get("val")
                    if isinstance(value, torch.Tensor):
                        place.meta["known_sizes"] = value
                        fake, value = value, recorder.bind(place, _make_sample_tensor(value, sizes))
                        for dim, size in enumerate(fake.shape):
                            if isinstance(size, SymInt):
                                unbacked.input(place, dim, size.node.expr, value._tl_memory.shape[dim])
                    env[node] = value
                elif node.op == "get_attr":
                    env[node] = node
                elif node.op == "output":
                    recorder.graph.output(tuple(_read_argument(r, env, recorder) for r in node.args[0])).meta["val"] = (
                        None
                    )
                else:
                    recorder.source, recorder.module_stack, unbacked.name = (
                        node,
                        node.meta.get("nn_module_stack"),
                        _find_unbacked_symbol(node)[0],
                    )
                    _run_node(node, env, recorder)
                if node.name in named and isinstance(env.get(node), torch.Tensor):
                    recorder.node_of(env[node]).meta.setdefault("was", []).append(node.name)
    finally:
        unbacked.open = False
    eliminate_unused(graph, _values_to_keep(graph) | {node for node, _ in unbacked.sources.values()})
    return graph, unbacked


def _values_in_call_signatures(program: Any) -> set[str]:
    """Return the values that call signatures of submodules name."""
    signatures = [e.signature for e in program.module_call_graph[1:] if e.signature is not None]
    return {a.name for s in signatures for a in (*s.inputs, *s.outputs) if not isinstance(a, gs.ConstantArgument)}


def _values_to_keep(graph: Graph) -> set[Node]:
    return {node for node in graph.nodes if "was" in node.meta}


def _rename_in_call_signatures(program: Any, graph: Graph) -> None:
    """Update call signatures of submodules to a new graph; drop signatures with missing values."""
    names: dict[str, str] = {}
    for node in graph.nodes:
        for name in node.meta.pop("was", ()):
            names.setdefault(name, node.name)
    for entry in program.module_call_graph[1:]:
        if entry.signature is None:
            continue
        args = [*entry.signature.inputs, *entry.signature.outputs]
        own = [a for a in args if not isinstance(a, gs.ConstantArgument)]
        if all(a.name in names for a in own):
            for arg in own:
                arg.name = names[arg.name]
        else:
            entry.signature = None


def _read_argument(value: Any, env: dict[Node, Any], recorder: OpRecorder) -> Any:
    return recorder.argument(env[value] if isinstance(value, Node) else value)


def _run_node(node: Node, env: dict[Node, Any], recorder: OpRecorder) -> None:
    """Run one node of the program under the recorder."""
    from torchlite._higher_order_ops.higher_order_operator import HigherOrderOperator
    from torchlite._higher_order_ops.out_dtype import out_dtype

    if isinstance(node.target, HigherOrderOperator) and node.target is not out_dtype:
        _keep_higher_order_node(node, env, recorder)
        return
    args = tuple(_to_plain_value(a, env) for a in node.args)
    kwargs = {name: _to_plain_value(a, env) for name, a in node.kwargs.items()}
    own = getattr(node.target, "namespace", "")
    if not own or own == "aten" and node.target._opname.startswith("sym_"):  # type: ignore[union-attr]
        run = SIZE_QUERIES.get(node.target, node.target)
        recorder.line = node.name
        with recorder:
            env[node] = run(*args, **kwargs)  # type: ignore[operator]
        recorder.line = None
        return
    recorder.stack_trace = node.meta.get("stack_trace")
    rule = recorder.decompositions.get(node.target)
    if rule is not None and isinstance(node.target, CheckedCallable):
        node.target.check(args, kwargs)
    run = rule or (implementation_of(node.target) if _is_view(node.target) else node.target)
    with recorder:
        if node.target in ITEM_OPS:
            found = args[0].item()
        elif rule is None and _is_assertion(node.target):
            found = NotImplemented
        elif not getattr(node.target, "is_implicit", False):
            found = run(*args, **kwargs)  # type: ignore[operator]
        elif rule is None and is_kept_as_one_op(node.target):
            found = NotImplemented
        else:
            found = recorder.tried(lambda: run(*args, **kwargs))  # type: ignore[operator]
    env[node] = recorder.kept(node.target, args, kwargs) if found is NotImplemented else found


def _to_plain_value(value: Any, env: dict[Node, Any]) -> Any:
    """Return a node's argument as a value."""
    if isinstance(value, Node):
        return env[value]
    if isinstance(value, (list, tuple)):
        return [_to_plain_value(v, env) for v in value]
    return value


def _is_assertion(target: Any) -> bool:
    """True if an op returns nothing and writes nothing."""
    schema = getattr(target, "_schema", None)
    return schema is not None and not schema.returns and not schema.is_mutable


def _is_view(target: Any) -> bool:
    return target is torch.ops.aten.view.default


def _keep_higher_order_node(node: Node, env: dict[Node, Any], recorder: OpRecorder) -> None:
    """Copy a node with subgraphs unchanged."""

    def argument(value: Node) -> Any:
        found = env[value]
        if isinstance(found, torch.Tensor):
            return recorder.node_of(found)
        if isinstance(found, Node) and found.op == "get_attr":
            for made in recorder.graph.nodes:
                if made.op == "get_attr" and made.target == found.target:
                    return made
            return recorder.graph.create_node("get_attr", str(found.target), (), {}, found.name)
        return recorder.argument(found)

    from torchlite.fx.node import map_arg

    new_node = recorder.graph.create_node(
        "call_function", node.target, map_arg(node.args, argument), map_arg(node.kwargs, argument), node.name
    )
    new_node.meta.update(node.meta)
    values = node.meta.get("val")
    if values is None:
        users = list(node.users)
        values = [u.meta.get("val") for u in sorted(users, key=lambda u: u.args[1])]  # type: ignore[arg-type, return-value]
    env[node] = recorder.bind(new_node, tuple(_make_sample_tensor(v, _RetraceSizes(recorder)) for v in values))


class _RetraceSizes(dict):
    """Sizes of a trace, by the values known so far."""

    def __init__(self, recorder: OpRecorder) -> None:
        super().__init__()
        for tensor, node in recorder.nodes.items():
            value = node.meta.get("known_sizes")
            if node.op == "placeholder" and value is not None:
                for size, number in zip(value.shape, tensor.shape, strict=True):
                    if isinstance(size, SymInt) and len(size.node.expr.free_symbols) == 1:
                        name = next(iter(size.node.expr.free_symbols))
                        if size.node.expr == Expr.symbol(name):
                            self[name] = number


def _make_program(program: Any, graph: Graph, changed: dict[str, Node]) -> Any:
    """Return the program of a functional graph: new values of mutated inputs are its first outputs."""
    signature = program.graph_signature
    specs = {s.arg.name: s for s in signature.input_specs}
    kinds = {
        gs.InputKind.PARAMETER: gs.OutputKind.PARAMETER_MUTATION,
        gs.InputKind.BUFFER: gs.OutputKind.BUFFER_MUTATION,
        gs.InputKind.USER_INPUT: gs.OutputKind.USER_INPUT_MUTATION,
    }
    output = graph.output_node()
    before: list[Any] = []
    news: list[gs.OutputSpec] = []
    order = sorted(changed.items(), key=lambda item: specs[item[0]].kind is gs.InputKind.USER_INPUT)
    for name, node in order:
        spec = specs[name]
        if spec.kind not in kinds:
            raise RuntimeError(f"Constant {spec.target} is mutated in the forward method. Pls register it as buffer")
        target = name if spec.kind is gs.InputKind.USER_INPUT else spec.target
        before.append(node)
        news.append(gs.OutputSpec(kinds[spec.kind], gs.TensorArgument(node.name), target))
    results = list(output.args[0])  # type: ignore[arg-type]
    olds = []
    mutated = len(signature.output_specs) - len(results)
    for spec, result in zip(signature.output_specs[mutated:], results, strict=True):
        arg = type(spec.arg)(result.name) if isinstance(result, Node) else spec.arg
        olds.append(gs.OutputSpec(spec.kind, arg, spec.target))
    output.args = ((*before, *results),)
    root = torch.nn.Module()
    for node in graph.nodes:
        if node.op == "get_attr":
            root.add_module(str(node.target), getattr(program.graph_module, str(node.target)))
    eliminate_unused(graph, _values_to_keep(graph))
    inputs = [gs.InputSpec(s.kind, s.arg, s.target, s.persistent) for s in signature.input_specs]
    module = GraphModule(root, graph)
    made_program = program._update(module, gs.ExportGraphSignature(inputs, [*news, *olds]), dialect="ATEN")
    _rename_in_call_signatures(made_program, made_program.graph)
    return made_program
