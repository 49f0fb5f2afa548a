"""Runs graph modules node by node during export: the new nodes name the old ones, and keep their tags."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.fx import GraphModule, Interpreter, Node
from torchlite.fx.experimental._op_recorder import OpRecorder
from torchlite.fx.traceback import preserve_node_meta, set_current_meta

# Size queries go to the tensor, which has the expression.
SIZE_QUERIES: dict[Any, Any] = {
    torch.ops.aten.sym_size.int: lambda tensor, dim: tensor.size(dim),
    torch.ops.aten.sym_numel.default: lambda tensor: tensor.numel(),
}


def run_module(module: Any, recorder: OpRecorder, replaced: dict[int, Any], args: tuple, kwargs: dict) -> Any:
    """Return a module's result. `replaced` has functions that the trace calls in place of others, by their id."""
    if not isinstance(module, GraphModule) or _has_own_calls(module):
        return module(*args, **kwargs)
    info = getattr(module.graph._codegen, "pytree_info", None)
    names = info.orig_args if info else [str(node.target) for node in module.graph.nodes if node.op == "placeholder"]
    names = names[len(args) : len(args) + len(kwargs)]
    if {*names} != kwargs.keys():
        return module(*args, **kwargs)
    with preserve_node_meta():
        return _GraphRunner(module, recorder, replaced).run(*args, *(kwargs[name] for name in names))


def _has_own_calls(module: GraphModule) -> bool:
    """True if a call of the module runs more than its graph."""
    return "forward" in vars(module) or bool(module._forward_hooks or module._forward_pre_hooks)


class _GraphRunner(Interpreter):
    """Interpreter that records the overloads of its nodes."""

    def __init__(self, module: GraphModule, recorder: OpRecorder, replaced: dict[int, Any]) -> None:
        super().__init__(module)
        self.recorder, self.replaced = recorder, replaced

    def _set_current_node(self, node: Node) -> Any:
        return set_current_meta(node, "Interpreter_Interpreter")

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        target = SIZE_QUERIES.get(target) or self.replaced.get(id(target), target)
        if target is torch.ops.aten.view.default and not self._can_view(*args):
            target = torch.ops.aten.reshape.default
        if getattr(target, "__module__", "") not in ("_operator", "builtins", "math"):
            return target(*args, **kwargs)
        self.recorder.line = str(target)  # comparisons of sizes are the program's
        try:
            return target(*args, **kwargs)
        finally:
            self.recorder.line = None

    def _can_view(self, tensor: Any, size: Any) -> bool:
        """False if torchlite's strides differ from those of the kernels for which the graph was made."""
        with self.recorder.paused():
            try:
                tensor.detach().view([int(n) for n in size])
            except RuntimeError:
                return False
        return True
