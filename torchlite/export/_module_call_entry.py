"""How the modules of a program are called."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: the nodes of its inputs and outputs, and the trees that they are in."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: Any, new_node: Any) -> None:
        """Name a node anew."""
        for arg in (*self.inputs, *self.outputs):
            if getattr(arg, "name", None) == original_node.name:
                arg.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, by its name; with its call's signature where that is known."""

    fqn: str
    signature: ModuleCallSignature | None = None
