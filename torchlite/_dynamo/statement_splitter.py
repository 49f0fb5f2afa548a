"""Splits a function at its graph breaks: runs of statements become functions of their own, which are compiled.

The rewritten function has the control flow, the breaks as they are written, and a call for each run of statements
between them. So the interpreter itself keeps loops, `with`, `try` and `return` right.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .break_expressions import PREFIX, BreakLifter, Item, copy_node, name_at, redirect_calls
from .function_ast import Position, copy_tree, position_of
from .name_analysis import Exits, FlowAnalysis, Names, name_of

COMPOUND: Any = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.TryStar)
# A function with one of these names in it has access to its own frame.
FRAME_NAMES = frozenset("locals vars dir eval exec globals".split())
# Functions that look at their callers' frames, of which a part has one more.
_SEE_FRAMES = frozenset(("warn", "currentframe", "_getframe"))
_NEVER_IN_PARTS = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal,
                   ast.Delete, ast.Import, ast.ImportFrom)  # fmt: skip
_COMPUTATIONS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.AugAssign)


@dataclass
class SplitPlan:
    """Where a function is split. Positions are those of its source."""

    breaks: set[Position] = field(default_factory=set)  # expressions
    tests: set[Position] = field(default_factory=set)  # conditions
    written: set[Position] = field(default_factory=set)  # statements that run as written
    opened: set[Position] = field(default_factory=set)  # compound statements whose bodies are split
    cuts: set[Position] = field(default_factory=set)  # statements that begin a part
    trivial: set[tuple] = field(default_factory=set)  # parts that compute nothing with tensors


@dataclass
class Part:
    """A run of statements as a function. It gets the variables that it reads and returns those that it writes and that
    are needed later. A part that may return for the whole function returns a pair: whether it does, and the values.

    key: its place and interface. name: the variable by which it is called.
    """

    key: tuple
    name: str
    arguments: ast.arguments
    body: list[Any]
    inputs: list[str]
    statements: list[Any]


class StatementSplitter:
    """Splits the body of a function. local: its variables. parameters: those that have a value from the start."""

    def __init__(self, node: ast.FunctionDef, local: set[str], parameters: set[str], plan: SplitPlan) -> None:
        self.node, self.plan = node, plan
        self.flow = FlowAnalysis(set(local))
        self.parameters = frozenset(parameters)
        found = self.flow.names(*node.body)
        self.captured, self.shared = found.captured, found.shared
        stores = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        self.rebound = {n for n in self.captured if stores.count(n) + (n in parameters) > 1} | self.shared
        self.outer = {name for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        self.lifter = BreakLifter(plan.breaks, plan.tests, self.shared)
        self.parts: list[Part] = []
        self.functions: dict[str, Any] = {}  # functions of which each part has its own copy
        for s in node.body:
            name = self._defined_name(s)
            if name and stores.count(name) + (name in parameters) == isinstance(s, ast.Assign):
                self.functions[name] = s

    def _defined_name(self, s: Any) -> str:
        """Return the name of a function that a statement defines, if a copy of it does the same."""
        names = self.flow.names(s)
        if names.captured & self.rebound or names.shared or self.lifter.has_break(s):
            return ""
        if isinstance(s, ast.FunctionDef) and not (s.decorator_list or s.args.defaults or any(s.args.kw_defaults)):
            return s.name
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Lambda) and isinstance(s.targets[0], ast.Name):
            return s.targets[0].id if len(s.targets) == 1 and not s.value.args.defaults else ""
        return ""

    def _defines(self, s: Any) -> bool:
        return any(s is one for one in self.functions.values())

    def _with_functions(self, run: list) -> list:
        """Return statements after the definitions of the functions that they read."""
        made, used = list(run), set[str]()
        while True:
            reads = self.flow.live(made, frozenset(), Exits())
            names = [name for name in self.functions if name in reads and name not in used]
            if not names:
                return made
            used.update(names)
            made[:0] = [self.functions[name] for name in names]

    def split(self) -> list[Any]:
        """Return the statements of the rewritten function. `parts` has what they call."""
        return self._block(self.node.body, frozenset(self.captured), self.parameters, Exits())

    # -- blocks ---------------------------------------------------------------------------------

    def _block(self, statements: list, after: Names, bound: Names | None, exits: Exits) -> list[Any]:
        items = [item for s in statements for item in self._expand(s)]
        self._add_temporaries(items)
        lives = [after]
        for item in reversed(items):
            lives.append(self.flow.live_at(item.statement, lives[-1], exits) | self.captured)
        lives.reverse()
        made: list[Any] = []
        run: list[Any] = []
        begin: Names = frozenset()
        for n, item in enumerate(items):
            s, live = item.statement, lives[n + 1]
            if bound is None:
                made += self._finish(run, begin, lives[n], exits)
                run = []
                made.append(s)  # never reached
                continue
            bound_then = self.flow.bound_after([s], bound)
            is_plain = not item.is_written and self._is_plain(s, bound, bound_then, live, exits)
            is_cut = position_of(s) in self.plan.cuts or run and exits.error and self._is_seen(run, exits.error)
            if run and (not is_plain or is_cut):
                made += self._finish(run, begin, lives[n], exits)
                run = []
            if is_plain:
                begin = begin if run else bound
                run.append(s)
            elif item.is_written or not isinstance(s, COMPOUND):
                made.append(redirect_calls(s) if self._is_marked_written(s) else s)
            else:
                made += self._open(s, live, bound, exits)
            bound = bound_then
        return made + self._finish(run, begin, after, exits)

    def _add_temporaries(self, items: list[Item]) -> None:
        for item in items:
            for node in ast.walk(item.statement):
                if isinstance(node, ast.Name) and node.id.startswith(PREFIX):
                    self.flow.local.add(node.id)

    def _expand(self, s: Any) -> list[Item]:
        """Return the statements that a statement consists of: several where it has breaks."""
        if hasattr(s, "is_written"):  # made of a statement
            return [Item(s, s.is_written)]
        if isinstance(s, (ast.If, ast.For)):
            return self._expand_header(s)
        if isinstance(s, COMPOUND) or not self.lifter.has_break(s):
            return [Item(s, False)]
        items = self.lifter.lift(s)
        if self._is_marked_written(s):  # what is left of it
            items = [Item(i.statement, i.is_written or position_of(i.statement) == position_of(s)) for i in items]
        return items

    def _expand_header(self, s: Any) -> list[Item]:
        """Return what computes the header of a compound statement, and the statement."""
        field = "test" if isinstance(s, ast.If) else "iter"
        if not self.lifter.has_break(getattr(s, field)):
            return [Item(s, False)]
        before, expression = self.lifter.lift_header(getattr(s, field))
        made: Any = copy_node(s)
        setattr(made, field, expression)
        made.opens = True
        return [*before, Item(made, False)]

    def _is_marked_written(self, s: Any) -> bool:
        return not isinstance(s, COMPOUND) and position_of(s) in self.plan.written

    def _is_seen(self, run: list, needed: Names) -> bool:
        """True if code after an error sees what a run of statements assigned."""
        return not needed.isdisjoint(self.flow.names(*run).writes)

    def _is_plain(self, s: Any, bound: Names, bound_then: Names | None, live: Names, exits: Exits) -> bool:
        """True if a statement may be a part of its own."""
        if getattr(s, "opens", False) or position_of(s) in self.plan.opened or self._is_marked_written(s):
            return False
        if isinstance(s, (ast.Raise, ast.Break, ast.Continue, ast.Pass)):
            return False
        if self.lifter.has_break(s) and isinstance(s, COMPOUND) or not isinstance(s, _SPLITTABLE):
            return False
        nodes = list(ast.walk(s))
        if any(isinstance(n, _NEVER_IN_PARTS) or isinstance(n, _LOOP_EXITS) and not _is_inside(n, s) for n in nodes):
            return False
        if any(isinstance(n, ast.Call) and name_of(n) in _SEE_FRAMES for n in nodes):
            return False
        names = self.flow.names(s)
        writes = names.writes | names.maybe
        stores = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        if stores & self.outer or writes & self.rebound or names.captured & self.rebound or names.reads & self.shared:
            return False
        if self._defines(s):
            return False
        if isinstance(s, COMPOUND) and not exits.error.isdisjoint(writes):
            return False  # an error in its midst
        if isinstance(s, ast.Return) and (s.value is None or _is_plain_value(s.value)):
            return False
        needed = frozenset() if bound_then is None else live & writes
        if not self.flow.live_at(s, needed, Exits()) <= bound:
            return False
        return bound_then is None or needed <= bound_then

    # -- compound statements --------------------------------------------------------------------

    def _open(self, s: Any, after: Names, bound: Names, exits: Exits) -> list[Any]:
        """Return a compound statement with its bodies split."""
        made, flow = copy_node(s), self.flow
        if isinstance(s, ast.If):
            made.body = self._block(s.body, after, bound, exits)
            made.orelse = self._block(s.orelse, after, bound, exits)
            return [made]
        if isinstance(s, (ast.For, ast.While)):
            return self._open_loop(s, made, after, bound, exits)
        if isinstance(s, ast.With):
            inside = flow.within(s, after, exits)
            made.body = self._block(s.body, after, bound | flow.names(*s.items).writes, inside)
            return [made]
        last = flow.try_end(s, after, exits)
        beyond = flow.try_handlers(s, exits)
        then, inside = flow.try_body(s, after, exits)
        bound_body = flow.bound_after(s.body, bound)
        made.body = self._block(s.body, then, bound, inside)
        made.orelse = self._block(s.orelse, last, bound_body, beyond)
        made.finalbody = self._block(s.finalbody, after.union(*exits), bound, exits)
        made.handlers = [copy_node(h) for h in s.handlers]
        for handler in made.handlers:
            named = bound | {handler.name} if handler.name else bound
            handler.body = self._block(handler.body, flow.after_handler(handler, last), named, beyond)
        return [made]

    def _before(self, items: list[Item], s: Any, after: Names, bound: Names, exits: Exits) -> list[Any]:
        """Return the statements that compute a header."""
        if not items:
            return []
        for item in items:
            item.statement.is_written = item.is_written
        live = after | self.flow.live_at(s, after, exits)
        temporaries = {n.id for i in items for n in ast.walk(i.statement) if isinstance(n, ast.Name)}
        self._add_temporaries(items)
        live |= {n for n in temporaries if n.startswith(PREFIX)}
        return self._block([item.statement for item in items], live, bound, exits)

    def _open_loop(self, s: Any, made: Any, after: Names, bound: Names, exits: Exits) -> list[Any]:
        _, inside, top = self.flow.loop(s, after, exits)
        if isinstance(s, ast.For):
            made.body = self._block(s.body, top, bound | self.flow.names(s.target).writes, inside)
            made.orelse = self._block(s.orelse, after, bound, exits)
            return [made]
        if s.orelse:
            made.test = redirect_calls(s.test) if self.lifter.has_break(s.test) else s.test
            made.body = self._block(s.body, top, bound, inside)
            made.orelse = self._block(s.orelse, after, bound, exits)
            return [made]
        before, test = self.lifter.lift_header(s.test) if self.lifter.has_break(s.test) else ([], s.test)
        if before:
            leave: Any = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            made.test = ast.copy_location(ast.Constant(True), s.test)
            head = [*self._before(before, s, after, bound, inside), ast.copy_location(leave, s.test)]
        else:
            made.test, head = test, []
        made.body = [*head, *self._block(s.body, top, bound, inside)]
        return [made]

    # -- parts ----------------------------------------------------------------------------------

    def _finish(self, run: list, bound: Names, after: Names, exits: Exits) -> list[Any]:
        """Return a run of statements as the call of a part, or as written if there is nothing to compute."""
        if not run:
            return []
        if not any(isinstance(n, _COMPUTATIONS) for s in run for n in ast.walk(s)):
            return run
        flow = self.flow
        statements, run = run, self._with_functions(run)
        is_last = flow.bound_after(run, bound) is None
        has_return = any(isinstance(n, ast.Return) for s in run for n in _own_nodes(s))
        writes = flow.names(*statements).writes | flow.names(*statements).maybe
        outputs = [] if is_last else sorted(writes & after)
        inputs = sorted(flow.live(run, frozenset(outputs), Exits()))  # also a variable that only some paths write
        places = tuple(position_of(s) for s in run)
        key = (places, tuple(inputs), tuple(outputs), is_last, has_return)
        if key in self.plan.trivial:
            return statements
        first, last = statements[0], run[-1]
        name = f"{PREFIX}part{len(self.parts)}"
        body = list(run)
        if not is_last:
            value = _tuple_of(outputs, last)
            if has_return:
                body = [_with_flagged_returns(s) for s in body]
                value = _pair(False, value, last)
            body.append(ast.copy_location(ast.Return(value), last))
        arguments = ast.arguments([], [ast.arg(one) for one in inputs], None, [], [], None, [])
        self.parts.append(Part(key, name, arguments, body, inputs, statements))
        call: Any = ast.Call(name_at(first, name), [name_at(first, one) for one in inputs], [])
        ast.copy_location(call, first)
        if is_last:
            made: list[Any] = [ast.Return(call)] if has_return else [ast.Expr(call)]
        elif has_return:
            result = f"{PREFIX}result"
            flag, value = (_item(name_at(first, result), n) for n in (0, 1))
            made = [ast.Assign([name_at(first, result, ast.Store())], call)]
            made.append(ast.If(flag, [ast.Return(value)], []))
            made += _unpack(outputs, value, first)
        else:
            made = _unpack(outputs, call, first) or [ast.Expr(call)]
        return [ast.copy_location(one, first) for one in made]


def _unpack(names: list[str], value: Any, at: Any) -> list[Any]:
    """Return the assignment of a part's result to variables."""
    if not names:
        return []
    targets: list[Any] = [name_at(at, one, ast.Store()) for one in names]
    return [ast.Assign([targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())], value)]


def _tuple_of(names: list[str], at: Any) -> Any:
    if len(names) == 1:
        return name_at(at, names[0])
    return ast.copy_location(ast.Tuple([name_at(at, one) for one in names], ast.Load()), at)


def _pair(flag: bool, value: Any, at: Any) -> Any:
    return ast.copy_location(ast.Tuple([ast.Constant(flag), value or ast.Constant(None)], ast.Load()), at)


def _item(value: Any, place: int) -> Any:
    return ast.Subscript(value, ast.Constant(place), ast.Load())


class _ReturnFlagger(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> Any:
        return ast.copy_location(ast.Return(_pair(True, node.value, node)), node)

    def visit_scope(self, node: Any) -> Any:
        return node

    visit_Lambda = visit_FunctionDef = visit_ClassDef = visit_AsyncFunctionDef = visit_scope


def _with_flagged_returns(s: Any) -> Any:
    return _ReturnFlagger().visit(copy_tree(s))


def _own_nodes(s: Any) -> list[Any]:
    """Return the nodes of a statement without those of functions in it."""
    found, pending = [], [s]
    while pending:
        node = pending.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)
    return found


def _is_inside(leaving: Any, s: Any) -> bool:
    """True if a `break` or `continue` belongs to a loop inside of a statement."""
    return any(
        isinstance(loop, (ast.For, ast.While)) and any(leaving is n for part in loop.body for n in ast.walk(part))
        for loop in ast.walk(s)
    )


def _is_plain_value(value: Any) -> bool:
    """True if an expression only collects variables and constants."""
    plain = (ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Load)
    return all(isinstance(n, plain) for n in ast.walk(value))


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Assert, ast.FunctionDef, ast.ClassDef)
_SPLITTABLE: Any = (*COMPOUND, *_SIMPLE)
_LOOP_EXITS = (ast.Break, ast.Continue)
