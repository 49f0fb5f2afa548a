"""Folds batch norms into preceding convolutions in frozen programs."""

from __future__ import annotations

import ast
from typing import Any

from ._constant_propagation import ProgramConstants, assigned_name, count_loads, count_stores
from ._inlining import walk_statements
from ._python_translator import dotted_name

_CONVOLUTIONS = {f"torch.conv{n}d": False for n in (1, 2, 3)} | {f"torch.conv_transpose{n}d": True for n in (1, 2, 3)}


def fold_batch_norms(node: ast.FunctionDef, constants: ProgramConstants) -> bool:
    """Fold each `torch.batch_norm` that is the only user of a convolution. Return True if there was one."""
    once, read = count_stores(node), count_loads(node)
    made: dict[str, Any] = {}
    for part in walk_statements(node.body):
        target = assigned_name(part)
        value = getattr(part, "value", None)
        if target is not None and once[target] == 1 and read[target] == 1 and _is_conv(value):
            made[target] = value
    folder = _BatchNormFolder(made, constants)
    folder.visit(node)
    return folder.folded


class _BatchNormFolder(ast.NodeTransformer):
    def __init__(self, made: dict[str, Any], constants: ProgramConstants):
        self._made, self._constants, self.folded = made, constants, False

    def visit_Call(self, node: ast.Call) -> Any:
        """Replace a batch norm by its folded convolution."""
        self.generic_visit(node)
        if dotted_name(node.func) != "torch.batch_norm" or len(node.args) != 9:
            return node
        if not _fold_into_conv(node, self._made, self._constants):
            return node
        self.folded = True
        return node.args[0]


def _is_conv(node: Any) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) in _CONVOLUTIONS and len(node.args) >= 3


def _fold_into_conv(norm: ast.Call, made: dict[str, Any], constants: ProgramConstants) -> bool:
    from torchlite._ops.fused_inference import can_fold_batch_norm
    from torchlite.nn.utils.fusion import fuse_conv_bn_weights

    source: Any = norm.args[0]
    if isinstance(source, ast.Name) and source.id in made:
        source = made[source.id]
    if not _is_conv(source):
        return False
    training = getattr(norm.args[5], "value", True)
    scale, shift, mean, var = (_constant_tensor(a, constants) for a in norm.args[1:5])
    weight, bias = (_constant_tensor(a, constants) for a in source.args[1:3])
    epsilon = getattr(norm.args[7], "value", None)
    transposed = _CONVOLUTIONS[dotted_name(source.func) or ""]
    groups = getattr(source.args[6], "value", 0) if transposed and len(source.args) > 6 else 1
    if any(isinstance(value, ast.AST) for value in (scale, shift, mean, var, weight, bias)):
        return False
    if weight is None or epsilon.__class__ is not float:
        return False
    if not can_fold_batch_norm(training, mean, var, transposed, groups):
        return False
    fused = fuse_conv_bn_weights(weight, bias, mean, var, epsilon, scale, shift, transposed)
    source.args[1:3] = [constants.of(tensor.detach()) for tensor in fused]
    return True


def _constant_tensor(node: ast.AST, constants: ProgramConstants) -> Any:
    """Return a constant tensor, None, or the expression itself if neither."""
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    found = constants.value(node)
    return node if found is None else found
