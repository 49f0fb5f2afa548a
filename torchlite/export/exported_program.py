"""What `torch.export.export` and `torch.export.load` return."""

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
    """The decompositions that `run_decompositions` applies where it is given none."""
    from .decomp_utils import CustomDecompTable

    return CustomDecompTable()


class ExportedProgram:
    """A program as a graph of ops, with what the graph's inputs and outputs are, and the tensors that it works on.

    `verifiers` has no effect: programs are checked when they are read and written.

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
        self._guards: list[tuple[str, Any]] = []  # decisions on sizes: how a difference compares with 0
        self._dialect = "TRAINING"

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module whose inputs are parameters, buffers and constants too."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers by their names."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Constants and buffers that no state dict has, by their names."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """As `constants`."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """The ranges of sizes, by their symbols."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program: first the whole."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """The arguments that the program was exported with: `(args, kwargs)`, or None."""
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
        """The trees of arguments and results."""
        signature = self._root()
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """Which ops the graph may have: "TRAINING" as exported, "ATEN" once it is functional."""
        return self._dialect

    @property
    def verifier(self) -> Any:
        """None: there is one kind of graphs."""
        return None

    @property
    def verifiers(self) -> list[Any]:
        """None of them."""
        return []

    def _root(self) -> ModuleCallSignature:
        found = self._module_call_graph[0].signature
        if found is None:
            raise RuntimeError("the program does not say how it is called")
        return found

    def parameters(self) -> Iterator[Any]:
        """The parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters with their names."""
        return ((name, self._state_dict[name]) for name in self._graph_signature.parameters)

    def buffers(self) -> Iterator[Any]:
        """The buffers."""
        return (buffer for _, buffer in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers with their names."""
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
        """A module that runs the program: its parameters and buffers have the names that they had, and it may be moved
        and trained. With `check_guards` sizes that the program was not exported for are an AssertionError.
        """
        from ._unlift import unlift

        return unlift(self, check_guards)

    def run_decompositions(self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False) -> Any:
        """The program in the ops of core ATen, without writes: what buffers become is an output. `decomp_table` has
        functions by overload, and replaces the default ones. `decompose_custom_triton_ops` has no effect: there are no
        Triton kernels.
        """
        from ._run_decompositions import decompose_program

        return decompose_program(self, default_decompositions() if decomp_table is None else decomp_table)

    def validate(self) -> None:
        """AssertionError where the graph and its signature do not fit."""
        self.graph.lint()
        names = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        if names != [spec.arg.name for spec in self._graph_signature.input_specs]:
            raise AssertionError("the signature's inputs are not those of the graph")

    def _update(self, graph_module: Any, graph_signature: Any, **changed: Any) -> ExportedProgram:
        """A program with another graph and signature."""
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
    """The trees of a call's arguments and results."""

    in_spec: Any
    out_spec: Any
