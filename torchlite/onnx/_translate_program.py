"""Translates an exported program. Ops that the writer refuses are replaced by the ops that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._aten import OpOverload
from torchlite._aten.decompositions import find_any_decomposition, find_decomposition
from torchlite.export import ExportedProgram
from torchlite.fx.experimental._op_recorder import current_recorder

from ._export.program_to_model import ExportedGraph, ExportOptions, find_unwritten, translate
from ._protobuf import Message
from .errors import OnnxExporterError, UnsupportedOperatorError, WrittenViewError

_MAX_ROUNDS = 16  # decompositions of what others decompose to


def translate_program(exported: Any, options: ExportOptions) -> tuple[Any, Message]:
    """Return the model of a program, and the program that it was made of. An op without an export rule, or one whose
    rule raises, is decomposed; if it cannot be, the first error is raised.
    """
    refused: set[Any] = set()
    first: OnnxExporterError | None = None
    for _ in range(_MAX_ROUNDS):
        graph = program_to_export(exported)
        new = {target for target in find_unwritten(graph, options) if _can_decompose(target)} - refused
        if not new:
            try:
                return exported, translate(graph, options)
            except WrittenViewError:
                new = set()
            except OnnxExporterError as error:
                first, target = first or error, error._target
                if target in refused or not _can_decompose(target):
                    raise first from None
                new = {target}
            if not isinstance(exported, ExportedProgram):
                exported = exported.run_decompositions({})
                continue
        refused |= new
        try:
            exported = _decompose(exported, refused)
        except Exception as error:  # the parts may need values that the samples of a trace do not have
            name = str(next(iter(new))).replace(".", "::", 1) if new else "a write"
            raise (first or UnsupportedOperatorError(name, options.version)) from error
    raise first or OnnxExporterError("ops decompose into themselves")


def find_inexpressible(exported: Any, options: ExportOptions) -> list[Any]:
    """Return the nodes whose ops have no export rule, of the program in parts as `translate_program` decomposes it."""
    refused: set[Any] = set()
    for _ in range(_MAX_ROUNDS):
        found = find_unwritten(program_to_export(exported), options)
        new = {target for target in found if _can_decompose(target)} - refused
        try:
            parts = _decompose(exported, refused | new) if new else None
        except Exception:  # the parts may need values that the samples of a trace do not have
            parts = None
        if parts is None:
            return [node for node in exported.graph.nodes if node.op == "call_function" and node.target in found]
        refused |= new
        exported = parts
    return []


def _can_decompose(target: Any) -> bool:
    """True if an op may be replaced. The parts of one that writes its arguments are those that ATen has for it."""
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return False
    return not target._schema.is_mutable or find_decomposition(target) is not None


def _decompose(exported: Any, refused: set[Any]) -> Any:
    """Return the program with the refused ops in parts, and its other ops as they are."""
    table: dict[Any, Callable] = {}
    for node in exported.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            table[node.target] = _keep
    for target in refused:
        table[target] = _attempt(find_any_decomposition(target))
    return exported.run_decompositions(table)


def _keep(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


def _attempt(run: Callable) -> Callable:
    """Decompose unless the parts read elements, are no ops of ATen, or contain the op itself."""
    inside = False

    def run_decomposed(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        recorder = current_recorder()
        if inside or recorder is None:
            return NotImplemented
        inside = True
        try:
            return recorder.tried(lambda: run(*args, **kwargs))
        finally:
            inside = False

    return run_decomposed


def program_to_export(exported: Any) -> ExportedGraph:
    """Return the parts of an exported program to export."""
    signature = exported.graph_signature
    tensors, inputs = {}, []
    for spec in signature.input_specs:
        kind = getattr(spec.kind, "name", str(spec.kind))
        if kind == "USER_INPUT":
            inputs.append(spec.arg.name)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            state, constants = exported.state_dict, exported.constants
            value = state[spec.target] if spec.target in state else constants[spec.target]
            tensors[spec.arg.name] = (spec.target, value, kind == "PARAMETER")
        else:
            raise OnnxExporterError(f"{spec.arg.name}: an input of the kind {kind}")
    outputs = [getattr(spec.kind, "name", "") == "USER_OUTPUT" for spec in signature.output_specs]
    return ExportedGraph(exported.graph_module.graph, exported.graph_module, tensors, inputs, outputs)
