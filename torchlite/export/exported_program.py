"""ExportedProgram: the result of `torch.export.export` and `torch.export.load`."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from torchlite.fx import Graph, GraphModule

from ._module_call_entry import ModuleCallEntry, ModuleCallSignature
from .graph_signature import ExportGraphSignature

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


def default_decompositions() -> dict[Any, Callable]:
    """Returns the table that `ExportedProgram.run_decompositions` uses by default.

    Returns:
        Dict from ops to functions. Entries can be removed or replaced.

    Example:
        >>> table = torch.export.default_decompositions()
        >>> del table[torch.ops.aten.linear.default]
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),)).run_decompositions(table)
        >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        ['aten.linear.default']
    """
    from .decomp_utils import CustomDecompTable

    return CustomDecompTable()


class ExportedProgram:
    """A program as a graph of ops, with specs of inputs and outputs, parameters, buffers and constants.

    `torch.export.export` and `torch.export.load` make it. `program.module()` is what runs it.

    Args:
        root: The graph's module.
        graph: The graph.
        graph_signature: The `ExportGraphSignature`.
        state_dict: Parameters and persistent buffers by name.
        range_constraints: Ranges of symbolic sizes.
        module_call_graph: `ModuleCallEntry` of each submodule, the root first.
        example_inputs: Example arguments ``(args, kwargs)``. Default: ``None``.
        constants: Constants and non-persistent buffers by name. Default: none.
        verifiers: No effect: programs are checked when they are read and written.

    Example:
        >>> import torchlite as torch
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        ['aten.linear.default']
        >>> program.module()(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    def __init__(
        self,
        root: Any,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: Any = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: Any = None,
    ) -> None:
        module = root if isinstance(root, GraphModule) and root.graph is graph else GraphModule(root, graph)
        self._graph_module = module
        self._graph_signature = graph_signature
        self._state_dict, self._range_constraints = state_dict, range_constraints
        self._module_call_graph, self._example_inputs = module_call_graph, example_inputs
        self._constants = constants or {}
        self._guards_code: list[str] = []
        self._guards: list[tuple[str, Any]] = []  # size guards: comparisons of a difference with 0
        self._dialect = "TRAINING"

    @property
    def graph_module(self) -> GraphModule:
        """Return the graph as a module that takes parameters, buffers and constants as inputs."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """Return the graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """Return the input and output specs."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Return parameters and persistent buffers by name."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Return constants and non-persistent buffers by name."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """Return `constants`."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """Return the ranges of symbolic sizes."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """Return the call entries of submodules, the root first."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """Return the example arguments `(args, kwargs)`, or None."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        if value is not None and not (
            isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict)
        ):
            raise ValueError("Example inputs should be a tuple containing example arguments (as a tuple) and keywords")
        self._example_inputs = value

    @property
    def call_spec(self) -> Any:
        """Return the tree specs of arguments and results."""
        signature = self._root()
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """Return the dialect: "TRAINING" as exported, "ATEN" once functional."""
        return self._dialect

    @property
    def verifier(self) -> Any:
        """Return None: there is a single kind of graph."""
        return None

    @property
    def verifiers(self) -> list[Any]:
        """Return an empty list."""
        return []

    def _root(self) -> ModuleCallSignature:
        found = self._module_call_graph[0].signature
        if found is None:
            raise RuntimeError("the program does not say how it is called")
        return found

    def parameters(self) -> Iterator[Any]:
        """Return the parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Return the named parameters."""
        return ((name, self._state_dict[name]) for name in self._graph_signature.parameters)

    def buffers(self) -> Iterator[Any]:
        """Return the buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Return the named buffers."""
        off = set(self._graph_signature.non_persistent_buffers)
        return (
            (name, (self._constants if name in off else self._state_dict)[name])
            for name in self._graph_signature.buffers
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """Returns a module that runs the program, with parameters and buffers under their names.

        The module can be moved to a device and trained.

        Args:
            check_guards: Whether inputs that violate the guards raise AssertionError. Default: ``True``.
        """
        from ._unlift import unlift

        return unlift(self, check_guards)

    def run_decompositions(self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False) -> Any:
        """Returns the program in core ATen ops and functional form, where new values of buffers are outputs.

        Args:
            decomp_table: Dict from ops to functions, which replaces the default. Default: `default_decompositions`.
            decompose_custom_triton_ops: No effect: there are no Triton kernels.
        """
        from ._run_decompositions import decompose_program

        return decompose_program(self, default_decompositions() if decomp_table is None else decomp_table)

    def validate(self) -> None:
        """Raise AssertionError if the graph does not match its signature."""
        self.graph.lint()
        names = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        if names != [spec.arg.name for spec in self._graph_signature.input_specs]:
            raise AssertionError("the signature's inputs are not those of the graph")

    def _update(self, graph_module: Any, graph_signature: Any, **changed: Any) -> ExportedProgram:
        """Return a program with another graph and signature."""
        made = ExportedProgram(
            root=graph_module,
            graph=graph_module.graph,
            graph_signature=graph_signature,
            state_dict=changed.get("state_dict", self._state_dict),
            range_constraints=changed.get("range_constraints", dict(self._range_constraints)),
            module_call_graph=copy.deepcopy(self._module_call_graph),
            example_inputs=self._example_inputs,
            constants=changed.get("constants", self._constants),
        )
        made._guards_code, made._dialect = list(self._guards_code), changed.get("dialect", self._dialect)
        made._guards = list(self._guards)
        return made

    def __str__(self) -> str:
        code = self._graph_module.print_readable(print_output=False, colored=False).replace("\n", "\n    ")
        signature = str(self._graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\n"
            f"Range constraints: {{{', '.join(f'{k}: {v}' for k, v in self._range_constraints.items())}}}\n"
        )


@dataclasses.dataclass
class CallSpec:
    """Tree specs of a call's arguments and results."""

    in_spec: Any
    out_spec: Any
