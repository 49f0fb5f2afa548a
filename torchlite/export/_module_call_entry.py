"""ModuleCallSignature and ModuleCallEntry: call signatures of submodules in a program."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module of a program is called.

    Args:
        inputs: Specs of the input nodes.
        outputs: Specs of the output nodes.
        in_spec: Tree spec of the arguments.
        out_spec: Tree spec of the result.
        forward_arg_names: Names of forward's parameters. Default: ``None``.

    Example:
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> program.module_call_graph[0].signature.forward_arg_names
        ['input']
    """

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Renames a node.

        Args:
            original_node: The node.
            new_node: The node whose name replaces its name.
        """
        for arg in (*self.inputs, *self.outputs):
            if getattr(arg, "name", None) == original_node.name:
                arg.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """Name of a submodule, with its call signature if that was preserved.

    Args:
        fqn: Name of the submodule; ``""`` is the root.
        signature: A `ModuleCallSignature`. Default: ``None``.

    Example:
        >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),))
        >>> [entry.fqn for entry in program.module_call_graph]
        ['', '0']
    """

    fqn: str
    signature: ModuleCallSignature | None = None
