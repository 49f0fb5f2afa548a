"""Tracks `nn_module_stack` during export, and signatures of preserved submodules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.fx import Node
from torchlite.fx.experimental._op_recorder import OpRecorder
from torchlite.fx.experimental._op_recorder import current_recorder as recorder_in_force
from torchlite.utils import _pytree as pytree

from . import graph_signature as gs
from ._module_call_entry import ModuleCallEntry, ModuleCallSignature

ROOT = "L__self__"


def type_name(module: Any) -> str:
    """Return a module's qualified class name under PyTorch."""
    cls = type(module)
    where = cls.__module__
    if where == "torchlite" or where.startswith("torchlite."):
        where = "torch" + where.removeprefix("torchlite")
    return f"{where}.{cls.__qualname__}"


class ModuleStackTracker:
    """Sets `nn_module_stack` on nodes during a trace. Records inputs and outputs of the modules in `preserved`."""

    def __init__(self, module: Any, recorder: OpRecorder, preserved: tuple[str, ...]) -> None:
        self.recorder, self.module = recorder, module
        self._paths = {id(part): name for name, part in module.named_modules()}
        self.names = [name for name in self._paths.values() if name]
        self.preserved = {id(module.get_submodule(name)): name for name in preserved}
        self.counts: dict[str, int] = {}
        self.noted: list[tuple[str, list[Any], list[Any], Any, Any]] = []

    def follow(self, module: Any, call: Callable, args: tuple, kwargs: dict) -> Any:
        """Call a module and add its name to the nodes, if it is a submodule of the program."""
        recorder, name = self.recorder, self._paths.get(id(module), "")
        before = recorder.module_stack
        found = recorder_in_force()
        if found is None or before is None or not name:
            return call(*args, **kwargs)
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        suffix = f"@{count}" if count else ""
        recorder.module_stack = {**before, f"{ROOT}{name}{suffix}": (name, type_name(module))}
        try:
            if id(module) not in self.preserved or found is not recorder:
                return call(*args, **kwargs)
            leaves, in_spec = pytree.tree_flatten((args, kwargs))
            inputs = [self._value_or_node(leaf) for leaf in leaves]
            result = call(*args, **kwargs)
            results, out_spec = pytree.tree_flatten(result)
            outputs = [self._value_or_node(leaf) for leaf in results]
            self.noted.append((f"{name}{suffix}", inputs, outputs, in_spec, out_spec))
            return result
        finally:
            recorder.module_stack = before

    def _value_or_node(self, leaf: Any) -> Any:
        return self.recorder.node_of(leaf) if isinstance(leaf, torch.Tensor) else self.recorder.argument(leaf)

    def kept(self) -> set[Node]:
        """Return the nodes that call signatures reference."""
        return {v for _, ins, outs, _, _ in self.noted for v in (*ins, *outs) if isinstance(v, Node)}

    def entries(self) -> list[ModuleCallEntry]:
        """Return an entry for each submodule, with preserved signatures."""
        found = {name: ModuleCallEntry(name) for name in self.names}
        for name, ins, outs, in_spec, out_spec in self.noted:
            signature = ModuleCallSignature(
                [*map(_to_argument_spec, ins)], [*map(_to_argument_spec, outs)], in_spec, out_spec
            )
            found[name] = ModuleCallEntry(name, signature)
        return list(found.values())


def _to_argument_spec(value: Any) -> Any:
    if not isinstance(value, Node):
        return gs.ConstantArgument("", value)
    kinds: dict[Any, Any] = {bool: gs.SymBoolArgument, float: gs.SymFloatArgument}
    known = value.meta.get("val")
    if isinstance(known, torch.Tensor):
        return gs.TensorArgument(value.name)
    return kinds.get(type(known), gs.SymIntArgument)(value.name)
