"""Unlifts exported programs to modules: parameters, buffers and constants become attributes, and mutations are written
back.
"""

from __future__ import annotations

import sys
from typing import Any

import torchlite as torch
from torchlite.fx import Graph, GraphModule
from torchlite.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from torchlite.fx._node_source import NodeSource, NodeSourceAction
from torchlite.nn import Module

from . import _graph_codegen
from ._input_guards import GuardsFn, _list_argument_names, _make_guards
from ._lifted_inputs import lifted_names
from .graph_signature import InputKind, OutputKind

GUARDS_NAME = "_guards_fn"  # submodule that checks inputs
_WITHOUT_GUARDS = frozenset(("executorch", "modai", "on_device_ai", "torchao"))  # folders
_MUTATION_KINDS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)


class ProgramModule(GraphModule):
    """Module of an exported program. `_graph_codegen` installs its forward; `code` shows the graph."""

    def recompile(self) -> Any:
        code = super().recompile()
        _graph_codegen.install_forward(self)
        return code

    def train(self, mode: bool = True) -> Any:
        """Raise NotImplementedError: a program is exported for one mode."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> Any:
        """Raise NotImplementedError: a program is exported for one mode."""
        raise NotImplementedError("Calling eval() is not supported yet.")


class SubgraphModule(GraphModule):
    """Subgraph of an exported program. It uses the program's codegen and op checks."""

    def recompile(self) -> Any:
        code = super().recompile()
        _graph_codegen.install_subgraph_forward(self)
        return code


def unlift(program: Any, check_guards: bool) -> GraphModule:
    """Return a program's module."""
    root = _make_root_module(program)
    check_guards = check_guards and not _is_called_by_packages_without_guards()
    lifted = lifted_names(program)
    graph, values = Graph(), {}
    attributes: dict[str, Any] = {}
    inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
    users = [node for node in inputs if node.name not in lifted]
    for node in inputs:
        if node.name not in lifted:
            values[node] = graph.node_copy(node)
            _set_source(values[node], node)
        else:
            target = lifted[node.name][1]
            values[node] = graph.create_node("get_attr", target, (), {}, target.replace(".", "_"))
            values[node].meta.update(node.meta)
            _set_source(values[node], node, "ExportedProgram.module().unlift()", NodeSourceAction.REPLACE)
            attributes[target] = values[node]
    if check_guards:
        root.add_module(GUARDS_NAME, GuardsFn(_make_guards(program, users)))
        stacks = (node.meta.get("nn_module_stack") for node in program.graph.nodes if node.op == "call_function")
        made = graph.call_module(GUARDS_NAME, tuple(values[node] for node in users))
        made.meta["nn_module_stack"] = next(stacks, None)
    for node in program.graph.nodes:
        if node.op == "get_attr":
            root.add_module(str(node.target), getattr(program.graph_module, str(node.target)))
        if node.op not in ("placeholder", "output"):
            values[node] = graph.node_copy(node, values.__getitem__)
            _set_source(values[node], node)
    _write_outputs(program, graph, values, attributes)
    signature = program._root()
    names = signature.forward_arg_names or _list_argument_names(signature.in_spec)
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, signature.in_spec, signature.out_spec)))
    module = ProgramModule(root, graph)
    return module


def _is_called_by_packages_without_guards() -> bool:
    """True if a caller belongs to a package whose passes expect graphs without calls of modules, as in PyTorch."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _WITHOUT_GUARDS.isdisjoint(frame.f_code.co_filename.replace("\\", "/").split("/")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _set_source(node: Any, source: Any, pass_name: str = "ExportedProgram.module()", *more: NodeSourceAction) -> None:
    """Note which node of the program a node was made of."""
    node.meta["from_node"] = [NodeSource(source, pass_name, [NodeSourceAction.CREATE, *more])]


def _write_outputs(program: Any, graph: Graph, values: dict, attributes: dict[str, Any]) -> None:
    """Add writes of mutated inputs; return the user outputs."""
    output = program.graph.output_node()
    results = []
    by_name = {node.name: value for node, value in values.items()}
    for spec, result in zip(program.graph_signature.output_specs, output.args[0], strict=True):
        value = values[result] if isinstance(result, torch.fx.Node) else result
        if spec.kind in _MUTATION_KINDS:
            is_input = spec.kind is OutputKind.USER_INPUT_MUTATION
            target = by_name[spec.target] if is_input else attributes[str(spec.target)]
            graph.call_function(torch.ops.aten.copy_.default, (target, value))
        elif spec.kind is OutputKind.USER_OUTPUT or spec.kind is OutputKind.LOSS_OUTPUT:
            results.append(value)
    made = graph.output(tuple(results))
    _set_source(made, output, "ExportedProgram.module().unlift()", NodeSourceAction.REPLACE)


def _make_root_module(program: Any) -> Module:
    """Return a module with the program's tensors under their names."""
    root = Module()
    off = set(program.graph_signature.non_persistent_buffers)
    for kind, name in lifted_names(program).values():
        persistent = kind is InputKind.PARAMETER or (kind is InputKind.BUFFER and name not in off)
        value = (program.state_dict if persistent else program.constants)[name]
        owner, last = resolve_owner(root, name)
        if kind is InputKind.PARAMETER:
            owner.register_parameter(last, value)
        else:
            owner.register_buffer(last, value, persistent=persistent)
    return root


def resolve_owner(root: Any, name: str) -> tuple[Any, str]:
    """Return the owner module and attribute of a dotted name; create missing modules."""
    *path, last = name.split(".")
    for part in path:
        inner = root._modules.get(part)
        if inner is None:
            inner = Module()
            root.add_module(part, inner)
        root = inner
    return root, last
