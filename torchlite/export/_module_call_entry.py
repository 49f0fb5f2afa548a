"""ModuleCallSignature and ModuleCallEntry: call signatures of submodules in a program."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class ModuleCallSignature:
    """Call signature of a module: its input and output nodes, and their tree specs."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Rename a node."""
        for arg in (*self.inputs, *self.outputs):
            if getattr(arg, "name", None) == original_node.name:
                arg.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """Name of a submodule, with its call signature if preserved."""

    fqn: str
    signature: ModuleCallSignature | None = None
