"""Batch norms with constant weights, as part of the convolution before them; and which constants a method writes to."""

from __future__ import annotations

import ast
import functools
from typing import Any

from ._constant_propagation import ProgramConstants, assigned_name, count_loads, count_stores
from ._inlining import walk_statements
from ._python_translator import ANNOTATED, dotted_name

_CONVOLUTIONS = {f"torch.conv{n}d": False for n in (1, 2, 3)} | {f"torch.conv_transpose{n}d": True for n in (1, 2, 3)}
_MAX_NESTING_DEPTH = 30  # forms in each other, of those that are put together
_BUILT_IN = frozenset("int float bool str len min max abs sum range isinstance print".split())


def fold_batch_norms(node: ast.FunctionDef, constants: ProgramConstants) -> bool:
    """Fold each `torch.batch_norm` that alone uses a convolution. Returns whether there was one."""
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
        """A batch norm becomes what it normalises."""
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
    scale, shift, mean, var = (_tensor(a, constants) for a in norm.args[1:5])
    weight, bias = (_tensor(a, constants) for a in source.args[1:3])
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


def _tensor(node: ast.AST, constants: ProgramConstants) -> Any:
    """A constant tensor, or None; the expression itself where it is neither."""
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    found = constants.value(node)
    return node if found is None else found


# -- what is written to ------------------------------------------------------------------------------


@functools.cache
def _may_alias(operator: str) -> bool:
    """Whether an operator may give a part of what it gets."""
    from .. import ops

    packet: Any = getattr(ops.aten, operator, None)
    if not hasattr(packet, "overloads"):  # an operator of the language's: of lists, text, ...
        return True
    return any("(a" in str(getattr(packet, name)._schema) for name in packet.overloads())


def mutated_constants(node: ast.FunctionDef, constants: ProgramConstants) -> set[int]:
    """The constants that a method may write to, by number."""
    finder = _MutationFinder(constants)
    before = -1
    while before != finder.size():
        before = finder.size()
        for part in walk_statements(node.body):
            finder.statement(part)
    return finder.found


class _MutationFinder:
    def __init__(self, constants: ProgramConstants):
        self._constants, self.found = constants, set[int]()
        self._variables: dict[str, set[int]] = {}

    def size(self) -> int:
        """How much is known."""
        return len(self.found) + sum(map(len, self._variables.values()))

    def statement(self, part: ast.stmt) -> None:
        """Take up what a statement does."""
        value = getattr(part, "value", None)
        roots = self._roots(value) if isinstance(value, ast.expr) else set()
        for target in getattr(part, "targets", None) or [getattr(part, "target", None)]:
            if isinstance(part, ast.For):
                roots = self._roots(part.iter)
            if isinstance(part, ast.AugAssign):
                self.found |= self._roots(part.target)
            self._bound(target, roots)
        for test in (getattr(part, "test", None), getattr(part, "iter", None)):
            if isinstance(test, ast.expr):
                self._roots(test)

    def _bound(self, target: Any, roots: set[int]) -> None:
        if isinstance(target, ast.Name):
            self._variables.setdefault(target.id, set()).update(roots)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._bound(item, roots)
        elif isinstance(target, ast.Subscript):
            self.found |= self._roots(target.value)
        elif isinstance(target, ast.Attribute):
            self.found |= roots

    def _roots(self, node: ast.AST) -> set[int]:
        """The constants that a value may be, or be a part of."""
        number = self._constants.number(node)
        if number is not None:
            return {number}
        if isinstance(node, ast.Name):
            return self._variables.get(node.id, set())
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)):
            return set()  # a new value
        inner = [self._roots(part) for part in ast.iter_child_nodes(node) if isinstance(part, (ast.expr, ast.keyword))]
        if not isinstance(node, ast.Call):
            return set().union(*inner)
        path = dotted_name(node.func) or ""
        if path in ANNOTATED:
            return self._roots(node.args[1])
        given = [self._roots(a) for a in node.args] + [self._roots(k.value) for k in node.keywords]
        operator = path.removeprefix("torch.") if path.startswith("torch.") else ""
        if isinstance(node.func, ast.Attribute) and not path.startswith(("torch.", "ops.", "__torch__.")):
            operator, given = node.func.attr, [self._roots(node.func.value), *given]
        everything = set().union(*given)
        if path in _BUILT_IN:
            return set()
        if not operator:  # a function of the program, or an operator of a library's: it may do anything
            self.found |= everything
            return everything
        if operator.endswith("_") and not operator.endswith("__") or operator == "_set_item":
            self.found |= given[0] if given else set()
        for k in node.keywords:
            if k.arg == "out":
                self.found |= self._roots(k.value)
        return everything if _may_alias(operator) else set()


# -- how it is written ------------------------------------------------------------------------------------


def inline_single_use(node: ast.FunctionDef) -> None:
    """Put what a variable of our own holds where the next statement reads it, so that it is free soon."""
    once, read = count_stores(node), count_loads(node)
    for owner in [node, *walk_statements(node.body)]:
        for field in ("body", "orelse"):
            body = getattr(owner, field, None)
            if isinstance(body, list):
                setattr(owner, field, _inline_in_block(body, once, read))


def _inline_in_block(body: list[ast.stmt], once: Any, read: Any) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for part in body:
        last = out[-1] if out else None
        target = assigned_name(last) if isinstance(last, ast.Assign) else None
        if target is not None and target.startswith(("_0", "result")) and once[target] == read[target] == 1:
            if isinstance(part, (ast.Assign, ast.Return, ast.Expr)) and part.value is not None:
                value = last.value  # type: ignore[union-attr]
                if _depth(value) < _MAX_NESTING_DEPTH and _substitute(part, target, value):
                    out.pop()
        out.append(part)
    return out


def _depth(node: ast.AST) -> int:
    return 1 + max((_depth(part) for part in ast.iter_child_nodes(node)), default=0)


def _substitute(part: Any, target: str, value: ast.expr) -> bool:
    """Put a value in the place of a variable that is read before anything is computed."""
    node, field, place = part, "value", None
    while True:
        inner = getattr(node, field) if place is None else getattr(node, field)[place]
        if isinstance(inner, ast.Name) and inner.id == target:
            if place is None:
                setattr(node, field, value)
            else:
                getattr(node, field)[place] = value
            return True
        if isinstance(inner, ast.Call) and (dotted_name(inner.func) or "").startswith("torch.") and inner.args:
            node, field, place = inner, "args", _first_evaluated(inner.args)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and dotted_name(inner.func) is None:
            node, field, place = inner.func, "value", None
        elif isinstance(inner, ast.BinOp):
            node, field, place = inner, "left", None
        elif isinstance(inner, (ast.List, ast.Tuple)) and inner.elts:
            node, field, place = inner, "elts", _first_evaluated(inner.elts)
        else:
            return False


def _first_evaluated(items: list[ast.expr]) -> int:
    """The first of some expressions that is computed."""
    plain = (ast.Constant,)
    return next((i for i, item in enumerate(items) if not isinstance(item, plain)), 0)
