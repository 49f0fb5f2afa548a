"""Constant propagation and dead code elimination in methods of frozen modules."""

from __future__ import annotations

import ast
import collections
import copy
import math
from collections.abc import Callable
from typing import Any

from .._dispatch.call import Tensor
from ._inlining import load_name, path_expression, path_of, walk_statements
from ._nontensor_ops import NONTENSOR_OPS
from ._python_translator import ANNOTATED, ProgramError, PythonTranslator, dotted_name

_RANDOM = frozenset(
    "rand randn randint randperm bernoulli multinomial normal poisson dropout alpha_dropout feature_dropout "
    "feature_alpha_dropout rrelu empty empty_like empty_strided rand_like randn_like randint_like manual_seed seed "
    "warn print is_grad_enabled set_grad_enabled save is_autocast_enabled append extend insert pop clear remove sort "
    "reverse update setdefault popitem _set_item Delete".split()
)
_DROPOUTS = frozenset(f"torch.{kind}dropout" for kind in ("", "alpha_", "feature_", "feature_alpha_"))
_ROOTS = frozenset(("torch", "ops", "__torch__", "CONSTANTS"))  # prefixes of global names
_IDENTITY = {"torch.__is__": ast.Is, "torch.__isnot__": ast.IsNot}
_LITERAL = (ast.List, ast.Tuple)


class ProgramConstants:
    """Constants of a program being written: numbered tensors and their former names."""

    def __init__(self, values: Any = ()):
        self.values: list[Any] = list(values)
        self.paths: dict[int, set[tuple[str, ...]]] = {}  # attribute paths of constants
        self.computed: dict[int, str] = {}  # source expressions of computed constants
        self._numbers: dict[int, int] = {id(value): i for i, value in enumerate(self.values)}

    def of(self, value: Any) -> ast.expr:
        """Return the expression of a tensor constant."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.values)
            self.values.append(value)
        return ast.Attribute(load_name("CONSTANTS"), f"c{self._numbers[id(value)]}", ast.Load())

    def number(self, node: ast.AST) -> int | None:
        """Return the number of a constant expression."""
        path = dotted_name(node) or ""
        return int(path[11:]) if path.startswith("CONSTANTS.c") and path[11:].isdecimal() else None

    def value(self, node: ast.AST) -> Any:
        """Return the tensor of a constant expression, None for others."""
        number = self.number(node)
        return None if number is None else self.values[number]


def to_literal(value: Any) -> ast.expr | None:
    """Return the literal of a number or string, None for other values."""
    if value is None or value.__class__ in (bool, str):
        return ast.Constant(value)
    if value.__class__ is int:
        return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
    if value.__class__ is not float:
        return None
    if math.isnan(value):
        return load_name("nan")
    out: ast.expr = load_name("inf") if math.isinf(value) else ast.Constant(abs(value))
    return ast.UnaryOp(ast.USub(), out) if math.copysign(1.0, value) < 0 else out


def is_constant(node: ast.AST) -> bool:
    """True if an expression is constant."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return isinstance(node.operand, ast.Constant) or dotted_name(node.operand) in ("inf", "nan")
    return isinstance(node, ast.Constant) or dotted_name(node) in ("inf", "nan") or _is_constant(node)


def _is_constant(node: ast.AST) -> bool:
    path = dotted_name(node) or ""
    return path.startswith("CONSTANTS.c") and path[11:].isdecimal()


def _are_constant(node: ast.AST) -> bool:
    if isinstance(node, _LITERAL):
        return all(map(_are_constant, node.elts))
    return is_constant(node)


def is_pure(node: ast.AST) -> bool:
    """True if an expression is pure and deterministic."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            path = dotted_name(part.func) or getattr(part.func, "attr", "") or "?"
            last = path.rpartition(".")[2]
            if last in _RANDOM or last.endswith("_") and not last.endswith("__"):
                return False
            if not (path.startswith("torch.") or path in _PURE or path in ANNOTATED):
                return False
            if any(k.arg in ("out", "generator") for k in part.keywords):
                return False
    return True


_PURE = frozenset("int float bool str len min max abs sum tuple isinstance getattr range complex round".split())


class ConstantPropagation(ast.NodeTransformer):
    """Simplify a method. `attribute` returns the expression of an attribute path, None for attributes that stay."""

    def __init__(self, program: Any, constants: ProgramConstants, attribute: Callable, fixed: set[str]):
        self._program, self._constants, self._attribute = program, constants, attribute
        self._fixed = fixed  # texts to leave alone: their results are mutated
        self._values: dict[str, ast.expr] = {}
        self._changed = False

    def run(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return the method, simplified to a fixed point."""
        self._changed = True
        while self._changed:
            self._changed = False
            _rename_versions(node)
            self._values = _single_assignment_values(node)
            node.body = self._simplify_block(node.body)
            _eliminate_unused(node, self)
        return node

    def noted(self) -> None:
        """Note a change, which may enable further simplification."""
        self._changed = True

    def _simplify_block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for part in body:
            made: Any = self.visit(part)
            out += made if isinstance(made, list) else [] if made is None else [made]
        return out

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Leave inner functions unchanged."""
        return node

    def visit_Pass(self, node: ast.Pass) -> Any:
        """Leave a placeholder in empty blocks."""
        return None

    def visit_If(self, node: ast.If) -> Any:
        """Fold a constant branch."""
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            self.noted()
            return self._simplify_block(node.body if test.value else node.orelse)
        body, orelse = self._simplify_block(node.body), self._simplify_block(node.orelse)
        if not body and not orelse and is_pure(test):
            self.noted()
            return None
        return ast.If(test, body or [ast.Pass()], orelse)

    def visit_For(self, node: ast.For) -> Any:
        """Simplify a loop's body."""
        return ast.For(node.target, self.visit(node.iter), self._simplify_block(node.body) or [ast.Pass()], [])

    def visit_While(self, node: ast.While) -> Any:
        """Simplify a loop's body."""
        return ast.While(self.visit(node.test), self._simplify_block(node.body) or [ast.Pass()], [])

    def visit_With(self, node: ast.With) -> Any:
        """Simplify a block's body."""
        return ast.With([self.visit(item) for item in node.items], self._simplify_block(node.body) or [ast.Pass()])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Simplify the value only; the annotation is no expression."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Drop a pure expression statement."""
        node.value = self.visit(node.value)
        if is_pure(node.value):
            self.noted()
            return None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Replace an attribute path by its constant."""
        if not isinstance(node.ctx, ast.Load):
            return node
        path = path_of(node)
        found = self._attribute(path) if path else None
        if found is not None:
            self.noted()
            return found
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        """Replace a variable by its constant."""
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            self.noted()
            return copy.deepcopy(self._values[node.id])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Fold a constant conditional expression."""
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            self.noted()
            return self.visit(node.body if test.value else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Fold `and` and `or` with a constant operand."""
        ends = isinstance(node.op, ast.Or)
        out: list[ast.expr] = []
        for value in node.values:
            operand = self.visit(value)
            if isinstance(operand, ast.Constant) and operand.value.__class__ is bool:
                self.noted()
                if operand.value is ends:
                    out.append(operand)
                    break
                continue
            out.append(operand)
        if not out:
            return ast.Constant(not ends)
        return out[0] if len(out) == 1 else ast.BoolOp(node.op, out)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Fold `not` of a constant."""
        if is_constant(node):
            return node
        node = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            self.noted()
            return ast.Constant(not node.operand.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Fold a comparison of constants."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        left, right = node.left, node.comparators[0]
        if not is_constant(left) or not is_constant(right):
            return node
        return (
            self._fold_identity_test(node, node)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot))
            else self._fold_computed_value(node)
        )

    def _fold_identity_test(self, node: ast.Compare, before: ast.expr) -> ast.expr:
        """Fold `is` and `is not`, return the original node if undecided."""
        left, right = node.left, node.comparators[0]
        if not is_constant(left) or not is_constant(right):
            return before
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            same = left.value is right.value
        elif any(isinstance(side, ast.Constant) and side.value is None for side in (left, right)):
            same = False
        else:
            return before
        self.noted()
        return ast.Constant(same == isinstance(node.ops[0], ast.Is))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Fold arithmetic on constants."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        return self._fold_computed_value(node) if is_constant(node.left) and is_constant(node.right) else node

    def visit_Call(self, node: ast.Call) -> Any:
        """Fold a call with constant arguments; remove dropout."""
        path = dotted_name(node.func)
        whole = path_of(node)
        if whole:
            found = self._attribute(whole)
            if found is None:
                return node
            self.noted()
            return found
        first = 1 if path in ANNOTATED else 0
        node.args = [*node.args[:first], *map(self.visit, node.args[first:])]
        for k in node.keywords:
            k.value = self.visit(k.value)
        if isinstance(node.func, ast.Attribute) and (path or "").partition(".")[0] not in _ROOTS:
            node.func.value = self.visit(node.func.value)
        if path in _DROPOUTS and len(node.args) == 3 and getattr(node.args[2], "value", None) is False:
            self.noted()
            return node.args[0]
        if path == "unchecked_cast" and is_constant(node.args[1]) and getattr(node.args[1], "value", 0) is not None:
            self.noted()
            return node.args[1]
        if path in _IDENTITY and len(node.args) == 2:
            return self._fold_identity_test(ast.Compare(node.args[0], [_IDENTITY[path]()], [node.args[1]]), node)
        if path == "isinstance" and is_constant(node.args[0]):
            return self._fold_computed_value(node)
        if path is None or not path.startswith("torch.") or not is_pure(node):
            return node
        if path.removeprefix("torch.") not in NONTENSOR_OPS and not any(map(_is_constant, ast.walk(node))):
            return node  # the result may be large
        if not all(map(_are_constant, (*node.args, *(k.value for k in node.keywords)))):
            return node
        return self._fold_computed_value(node)

    def _fold_computed_value(self, node: Any) -> Any:
        """Return the value of a constant expression as a constant."""
        text = ast.unparse(node)
        if text in self._fixed:
            return node
        self._program.constants = tuple(self._constants.values)
        body: list[ast.stmt] = [ast.Return(copy.deepcopy(node))]
        blank = ast.arguments([], [], None, [], [], None, [])
        try:
            function = PythonTranslator(self._program, "constants").function(
                ast.fix_missing_locations(ast.FunctionDef("computed", blank, body, [], None, None))
            )
            value = function()
        except (ProgramError, RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, MemoryError):
            return node  # the program raises this error when it runs
        literal = to_literal(value)
        if literal is None and isinstance(value, Tensor) and any(map(_is_constant, ast.walk(node))):
            literal = self._constants.of(value.detach())
            number = self._constants.number(literal)
            assert number is not None
            self._constants.computed[number] = text
        if literal is None:
            return node
        self.noted()
        return literal


def count_stores(node: ast.AST) -> collections.Counter:
    """Return how often each variable is assigned, including parameters."""
    found: collections.Counter = collections.Counter()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found[part.id] += 1
        elif isinstance(part, ast.arg):
            found[part.arg] += 1
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            found[part.target.id] += 1
    return found


def count_loads(node: ast.AST) -> collections.Counter:
    """Return how often each variable is read."""
    found: collections.Counter = collections.Counter()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found[part.id] += 1
    return found


def assigned_name(part: ast.stmt) -> str | None:
    """Return the variable of a plain assignment statement."""
    if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
        return part.targets[0].id
    if isinstance(part, ast.AnnAssign) and part.value is not None and isinstance(part.target, ast.Name):
        return part.target.id
    return None


def _single_assignment_values(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return variables assigned once, to a constant or another such variable."""
    once = {text for text, count in count_stores(node).items() if count == 1}
    found: dict[str, ast.expr] = {}
    for part in walk_statements(node.body):
        target = assigned_name(part)
        if target not in once:
            continue
        value: Any = part.value  # type: ignore[attr-defined]
        if is_constant(value) or isinstance(value, ast.Name) and value.id in once and value.id != "self":
            found[target] = found.get(value.id, value) if isinstance(value, ast.Name) else value  # type: ignore[index]
    return found


def _rename_versions(node: ast.FunctionDef) -> None:
    """Rename each version of a variable that is assigned in outermost statements only."""
    outer = collections.Counter(assigned_name(part) for part in node.body if assigned_name(part) is not None)
    arguments = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
    written = count_stores(node)
    several = {n for n, count in outer.items() if written[n] == count + (n in arguments) > 1}
    taken, now = set(written), dict.fromkeys(several & arguments)

    def rename_variable(part: ast.AST) -> None:
        for inner in ast.walk(part):
            if isinstance(inner, ast.Name) and now.get(inner.id):
                inner.id = now[inner.id] or inner.id

    for part in node.body:
        target = assigned_name(part)
        if target not in several:
            rename_variable(part)
            continue
        rename_variable(part.value)  # type: ignore[attr-defined]
        count = 0
        if target in now:
            while f"{target}_{count}" in taken:
                count += 1
            now[target] = f"{target}_{count}"
            taken.add(f"{target}_{count}")
        else:
            now[target] = None
        rename_variable(part.targets[0] if isinstance(part, ast.Assign) else part.target)  # type: ignore[attr-defined]


def _eliminate_unused(node: ast.FunctionDef, run: ConstantPropagation) -> None:
    """Remove assignments of unused variables."""
    read, written = count_loads(node), count_stores(node)

    def eliminate_in_block(body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for part in body:
            target = assigned_name(part)
            if target is not None and not read[target] and is_pure(part.value):  # type: ignore[attr-defined]
                run.noted()
                continue
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name) and target is not None and out:
                last, source = out[-1], part.value.id
                if source.startswith("_0") and assigned_name(last) == source and written[source] == read[source] == 1:
                    part.value = last.value  # type: ignore[attr-defined]
                    out.pop()
            for field in ("body", "orelse"):
                inner = getattr(part, field, None)
                if isinstance(inner, list):
                    setattr(part, field, eliminate_in_block(inner) or ([ast.Pass()] if field == "body" else []))
            out.append(part)
        return out

    node.body = eliminate_in_block(node.body) or [ast.Pass()]


__all__ = ["ProgramConstants", "ConstantPropagation", "path_expression"]
