"""The function of a code object, split at its graph breaks."""

from __future__ import annotations

import ast
import dis
import types
from typing import Any, NamedTuple

from torchlite._types.python_source import compile_code

from .break_expressions import CALLEE, PREFIX, copy_node, name_at
from .function_ast import Position, find_definition, position_of
from .name_analysis import Exits, FlowAnalysis
from .statement_splitter import COMPOUND, FRAME_NAMES, Part, SplitPlan, StatementSplitter


class Code(NamedTuple):
    """The code of a rewritten function, and its parts with theirs."""

    whole: types.CodeType
    parts: list[tuple[Part, types.CodeType]]


def split_function(code: types.CodeType) -> SplitFunction | None:
    """Return the function of a code object to be split; None where that is not possible."""
    if not FRAME_NAMES.isdisjoint(code.co_names):
        return None
    node = find_definition(code)
    return None if node is None else SplitFunction(code, node)


class SplitFunction:
    """A function with the places where it is split. `version` counts their changes."""

    def __init__(self, code: types.CodeType, node: ast.FunctionDef) -> None:
        self.code, self.node = code, node
        self.plan, self.version = SplitPlan(), 0
        self._built: tuple[int, Code] | None = None
        self._expressions: dict[Position, Any] = {}
        self._conditions: dict[Position, Any] = {}  # of statements
        for one in ast.walk(node):
            if isinstance(one, ast.expr):
                self._expressions.setdefault(position_of(one), one)
            elif isinstance(one, (ast.If, ast.While, ast.Assert)):
                self._conditions[position_of(one)] = one.test

    def mark(self, code: types.CodeType, place: int) -> bool:
        """Mark the expression that an instruction evaluates as a break. Return whether it was none before."""
        position, is_test = place_of_instruction(code, place)
        if position is None:
            return False
        if is_test:
            condition = self._expressions.get(position, self._conditions.get(position))
            before = self.version
            for one in _tests_in(condition):
                self._change(self.plan.tests, position_of(one))
            return self.version > before
        if position not in self._expressions:
            position = self._find_call(position)
        return position is not None and self._change(self.plan.breaks, position)

    def _find_call(self, position: Position) -> Position | None:
        """Return the call that ends at a position: its instruction may begin at a method's name."""
        for other, node in self._expressions.items():
            if isinstance(node, ast.Call) and other[1::2] == position[1::2]:
                return other
        return None

    def split_further(self, statements: list[Any] | None = None) -> Any:
        """Split a part, or the whole function, that fails at a place which is not known. Return the statement that runs
        as written, if it is found.
        """
        statements = self.node.body if statements is None else statements
        if len(statements) > 1:
            self._change(self.plan.cuts, position_of(statements[len(statements) // 2]))
            return None
        one = statements[0]
        self.plan.cuts.clear()
        if isinstance(one, COMPOUND):
            self._change(self.plan.opened, position_of(one))
            return None
        self._change(self.plan.written, position_of(one))
        return one

    def leave_out(self, key: tuple) -> None:
        """Run a part as written: it does not compute with tensors."""
        self._change(self.plan.trivial, key)

    def leave_number(self, part: Part, name: str) -> None:
        """Run the statements of a part that read a variable as written: it is another number in each call."""
        for s in part.statements:
            if name in FlowAnalysis({name}).live_at(s, frozenset(), Exits()):
                opens = isinstance(s, COMPOUND)
                self._change(self.plan.opened if opens else self.plan.written, position_of(s))

    def _change(self, marked: set, value: Any) -> bool:
        if value in marked:
            return False
        marked.add(value)
        self.version += 1
        return True

    def build(self) -> Code:
        """Return the code of the rewritten function and of its parts."""
        if self._built is None or self._built[0] != self.version:
            self._built = self.version, self._build()
        return self._built[1]

    def _build(self) -> Code:
        code, node = self.code, self.node
        count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in (0x4, 0x8))
        local = {*code.co_varnames, *code.co_cellvars}
        splitter = StatementSplitter(node, local, set(code.co_varnames[:count]), self.plan)
        body = splitter.split()
        names = [CALLEE, *(part.name for part in splitter.parts)]
        bindable = [one for one in sorted(local) if one not in code.co_varnames[:count]]
        whole = self._compile(node.args, [*body, *_declarations(bindable, node)], [*code.co_freevars, *names])
        parts = [(part, self._compile(part.arguments, part.body, [*code.co_freevars])) for part in splitter.parts]
        return Code(whole, parts)

    def _compile(self, arguments: ast.arguments, body: list, free: list[str]) -> types.CodeType:
        """Return the code of a function with the name and places of this one."""
        function = copy_node(self.node)
        function.name, function.args, function.body = _INNER, arguments, body or [ast.Pass()]
        scope = copy_node(self.node)
        scope.name = _OUTER
        scope.args = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
        scope.body = [function]
        future = (
            [ast.ImportFrom("__future__", [ast.alias("annotations")], 0)] if self.code.co_flags & _ANNOTATIONS else []
        )
        module = ast.Module([*future, scope], [])
        for one in future:
            ast.copy_location(one, scope)
        code = compile_code(ast.fix_missing_locations(module), self.code.co_filename)
        for name in (_OUTER, _INNER):
            code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
        return _with_qualified_name(code, code.co_qualname, self.code.co_qualname).replace(co_name=self.code.co_name)


def _with_qualified_name(code: types.CodeType, before: str, after: str) -> types.CodeType:
    """Return the code with another qualified name, which the names of functions and classes in it begin with."""
    name = code.co_qualname
    new = after + name[len(before) :]
    consts = [_with_qualified_name(c, before, after) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    # the code of a class has its qualified name as a constant
    return code.replace(
        co_qualname=new, co_consts=tuple([new if c.__class__ is str and c == name else c for c in consts])
    )


def place_of_instruction(code: types.CodeType, place: int) -> tuple[Position | None, bool]:
    """Return the position in the source of an instruction, and whether it tests the truth of a value."""
    found = next((p for n, p in enumerate(code.co_positions()) if n == place // 2), None)
    if found is None or None in found:
        return None, False
    name = dis.opname[code.co_code[place]]
    return found, name.startswith(("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT"))  # type: ignore[return-value]


def _tests_in(condition: Any) -> list[Any]:
    """Return the expressions of a condition whose truth is tested. Before Python 3.12 an instruction has the place of
    the whole condition, or of its statement.
    """
    if isinstance(condition, ast.IfExp):
        return _tests_in(condition.test)
    if isinstance(condition, ast.BoolOp):
        return [test for value in condition.values for test in _tests_in(value)]
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return [condition, *_tests_in(condition.operand)]
    return [] if condition is None else [condition]


def _declarations(names: list[str], at: Any) -> list[Any]:
    """Return a statement that is never reached, which makes names local: the only one that binds them may be gone."""
    targets: list[Any] = [name_at(at, one, ast.Store()) for one in names]
    assignments: list[Any] = [ast.Assign([one], ast.Constant(None)) for one in targets]
    return [ast.copy_location(ast.If(ast.Constant(False), assignments, []), at)] if assignments else []


# Names of generated functions, which the code in them does not have.
_OUTER, _INNER = f"{PREFIX}outer", f"{PREFIX}inner"
_ANNOTATIONS = 0x1000000  # from __future__ import annotations
