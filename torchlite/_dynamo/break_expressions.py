"""Takes a statement apart at the expressions that break a graph.

`y = f(g(x).item()) + h(x)` with a break at `item()` becomes `a = g(x)`, `b = a.item()`, `y = f(b) + h(x)`: what comes
before the break, the break, and what comes after it, in the order of evaluation.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .function_ast import Position, copy_tree, position_of

PREFIX = "_torchlite_"  # of names in rewritten functions
CALLEE = f"{PREFIX}callee"
# Calls of these names are not looked into.
_BUILTINS = frozenset(
    "print len isinstance issubclass getattr hasattr setattr int float bool str repr list tuple dict set range zip "
    "enumerate super type id iter next sum min max any all sorted map filter reversed abs round open vars".split()
)


class Item(NamedTuple):
    """A statement, and whether it runs as written."""

    statement: Any
    is_written: bool


class _CannotLiftError(Exception):
    """The break is in an expression that is not always evaluated."""


def temporary(position: Position) -> str:
    """Return the name for the value of the expression at a position."""
    return f"{PREFIX}{'_'.join(map(str, position))}"


def name_at(node: Any, name: str, context: Any = None) -> ast.Name:
    """Return a name in the place of a node."""
    return ast.copy_location(ast.Name(name, context or ast.Load()), node)


def assign(name: str, value: Any) -> ast.Assign:
    """Return `name = value` in the place of the value."""
    return ast.copy_location(ast.Assign([name_at(value, name, ast.Store())], value), value)


def redirect_calls(node: Any) -> Any:
    """Return a copy of a node in which calls of functions that may be the program's go through `CALLEE`."""
    return _CallRedirector().visit(copy_tree(node))


class _CallRedirector(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS or node.func.__class__ not in _CALLEES:
            return node
        return redirected(node)

    def visit_scope(self, node: Any) -> Any:
        return node

    visit_Lambda = visit_FunctionDef = visit_ClassDef = visit_AsyncFunctionDef = visit_scope


def redirected(node: ast.Call) -> ast.Call:
    """Return the call of what `CALLEE` gives in place of a function."""
    callee = ast.copy_location(ast.Call(name_at(node, CALLEE), [node.func], []), node)
    return ast.copy_location(ast.Call(callee, node.args, node.keywords), node)


_CALLEES = (ast.Name, ast.Attribute, ast.Subscript)


class BreakLifter:
    """Takes statements apart. breaks: positions of expressions that break graphs; tests: positions of conditions whose
    truth does. changing: variables that code elsewhere may write while an expression is evaluated.
    """

    def __init__(self, breaks: set[Position], tests: set[Position], changing: set[str]) -> None:
        self.breaks, self.tests, self.changing = breaks, tests, changing
        self.items: list[Item] = []
        self._known: dict[int, tuple[Any, bool]] = {}

    def has_break(self, node: Any) -> bool:
        """True if a node has a break in it."""
        if node is None:
            return False
        known = self._known.get(id(node))
        if known is None:
            found = any(
                position_of(one) in self.breaks or position_of(one) in self.tests
                for one in ast.walk(node)
                if isinstance(one, ast.expr)
            )
            self._known[id(node)] = known = node, found
        return known[1]

    def lift(self, statement: Any) -> list[Item]:
        """Return the statements that a simple one consists of."""
        self.items = []
        try:
            self._lift_statement(statement)
        except _CannotLiftError:
            return [Item(redirect_calls(statement), True)]
        return self.items

    def lift_header(self, expression: Any) -> tuple[list[Item], Any]:
        """Return the statements before a compound statement, and its header's expression."""
        self.items = []
        try:
            return self.items, self._lift_test(expression)
        except _CannotLiftError:
            return [], redirect_calls(expression)

    # -- statements -----------------------------------------------------------------------------

    def _lift_statement(self, s: Any) -> None:
        field = _VALUE_FIELDS.get(s.__class__)
        value = None if field is None else getattr(s, field)
        if value is None or not self.has_break(value) or self.has_break_beside(s, value):
            raise _CannotLiftError
        if isinstance(s, ast.AugAssign) and not isinstance(s.target, ast.Name) and not _is_read_of_tensor(value):
            raise _CannotLiftError
        lifted = self._lift_test(value) if isinstance(s, ast.Assert) else self._lift(value)
        if isinstance(s, ast.Expr) and isinstance(lifted, ast.Name):
            return
        self.items.append(Item(_with_value(s, field, lifted), False))

    def has_break_beside(self, s: Any, value: Any) -> bool:
        """True if a statement has a break outside of its value."""
        return any(one is not value and isinstance(one, ast.AST) and self.has_break(one) for one in _children(s))

    def _lift_test(self, e: Any) -> Any:
        """Lift a condition whose truth may be the break."""
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not) and self.has_break(e):
            inner = self._lift_test(e.operand)
            return ast.copy_location(ast.UnaryOp(e.op, inner), e)
        if isinstance(e, ast.BoolOp) and self.has_break(e):
            return self._lift_condition(e)
        lifted = self._lift(e) if any(position_of(one) in self.breaks for one in _expressions(e)) else e
        if position_of(e) in self.tests and not isinstance(lifted, ast.Name):
            return self._keep(lifted)
        return lifted

    def _lift_condition(self, e: ast.BoolOp) -> Any:
        """Lift `a and b`: `b` is evaluated in an `if` statement."""
        name = temporary(position_of(e))
        first = self._lift_test(e.values[0])
        self.items.append(Item(assign(name, ast.copy_location(_loaded(first), e.values[0])), False))
        for value in e.values[1:]:
            outer, self.items = self.items, []
            lifted = self._lift_test(value)
            inner = [*self.items, Item(assign(name, ast.copy_location(_loaded(lifted), value)), False)]
            self.items = outer
            test: Any = name_at(e, name)
            if isinstance(e.op, ast.Or):
                test = ast.copy_location(ast.UnaryOp(ast.Not(), test), e)
            for one in inner:
                one.statement.is_written = one.is_written
            made: Any = ast.copy_location(ast.If(test, [one.statement for one in inner], []), value)
            made.opens = True
            self.items.append(Item(made, False))
        return name_at(e, name)

    def _lift_choice(self, e: ast.IfExp) -> Any:
        """Lift `a if test else b`: an `if` statement evaluates one of them."""
        name, test = temporary(position_of(e)), self._lift_test(e.test)
        made = ast.If(test, [assign(name, e.body)], [assign(name, e.orelse)])
        self.items.append(Item(ast.copy_location(made, e), False))
        return name_at(e, name)

    # -- expressions ----------------------------------------------------------------------------

    def _lift(self, e: Any) -> Any:
        """Return an expression whose breaks, and what is evaluated before them, are in `items`."""
        is_break = position_of(e) in self.breaks or isinstance(e, ast.JoinedStr) and self._formats_break(e)
        if not is_break and not self.has_break(e):
            return e
        if isinstance(e, ast.BoolOp):
            return self._lift_condition(e)
        if isinstance(e, ast.IfExp):
            return self._lift_choice(e)
        children = _operands(e)
        if children is None or isinstance(e, ast.Compare) and len(e.ops) > 1:
            if not is_break or any(self.has_break(one) for one in _children(e)):
                raise _CannotLiftError
            children = []
        if isinstance(e, ast.UnaryOp) and position_of(e) in self.tests:  # `not`
            is_break = True
        places = [(n, child) for n, child in enumerate(children) if self.has_break(child[2])]
        if not is_break and not places:  # a condition that is not one here
            return e
        last = len(children) if is_break else places[-1][0] + 1
        made = copy_node(e)
        for n, (owner, field, child) in enumerate(children[:last]):
            if self.has_break(child):
                new = self._lift(child)
            elif owner == "func.value" and _is_dotted(child):
                continue
            elif (n < last - 1 or is_break) and not self._is_fixed(child):
                new = self._keep(child)
            else:
                continue
            _replace_child(made, owner, field, new)
        if not is_break:
            return made
        if isinstance(made, ast.Call) and made.func.__class__ in _CALLEES and not _is_builtin(made.func):
            made = redirected(made)
        name = temporary(position_of(e))
        self.items.append(Item(assign(name, made), True))
        return name_at(e, name)

    def _formats_break(self, e: ast.JoinedStr) -> bool:
        return any(position_of(one) in self.breaks for one in e.values)

    def _keep(self, e: Any) -> ast.Name:
        """Evaluate an expression now; return the name of its value."""
        name = temporary(position_of(e))
        self.items.append(Item(assign(name, e), False))
        return name_at(e, name)

    def _is_fixed(self, e: Any) -> bool:
        """True if the value of an expression does not depend on when it is evaluated."""
        e = e.value if isinstance(e, ast.Starred) else e
        return isinstance(e, ast.Constant) or isinstance(e, ast.Name) and e.id not in self.changing


def copy_node(node: Any) -> Any:
    """Return a copy of a node whose lists are copies too."""
    made = node.__class__()
    for name in (*node._fields, *node._attributes):
        value = getattr(node, name, None)
        setattr(made, name, list(value) if isinstance(value, list) else value)
    return made


def _is_dotted(e: Any) -> bool:
    """True for `a.b.c`."""
    while isinstance(e, ast.Attribute):
        e = e.value
    return isinstance(e, ast.Name)


def _loaded(e: Any) -> Any:
    return copy_node(e)


def _with_value(s: Any, field: str | None, value: Any) -> Any:
    made = copy_node(s)
    setattr(made, str(field), value)
    return made


def _children(node: Any) -> list[Any]:
    return [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.AST)]


def _expressions(node: Any) -> list[Any]:
    return [one for one in ast.walk(node) if isinstance(one, ast.expr)]


def _is_builtin(func: Any) -> bool:
    return isinstance(func, ast.Name) and func.id in _BUILTINS


def _is_read_of_tensor(value: Any) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _READS


# The operands of an expression in the order of evaluation: where each is in the node, and the operand.
def _operands(e: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return the operands, all of which are evaluated; None for another kind of expression."""
    starred = [one for one in (*getattr(e, "args", ()), *getattr(e, "elts", ())) if isinstance(one, ast.Starred)]
    if not all(isinstance(one.value, ast.Name) for one in starred):
        return None
    if isinstance(e, ast.Call):
        if isinstance(e.func, ast.Attribute):
            found: list[tuple[Any, Any, Any]] = [("func.value", None, e.func.value)]
        else:
            found = [("func", None, e.func)]
        found += [("args", n, one) for n, one in enumerate(e.args)]
        return found + [("keywords", n, one.value) for n, one in enumerate(e.keywords)]
    if isinstance(e, ast.Compare):
        return [("left", None, e.left), ("comparators", 0, e.comparators[0])]
    if isinstance(e, ast.Subscript):
        if any(isinstance(one, ast.Slice) for one in ast.walk(e.slice)):
            return [("value", None, e.value)]
        return [("value", None, e.value), ("slice", None, e.slice)]
    if isinstance(e, ast.Dict):
        if any(key is None for key in e.keys):
            return None
        pairs = [(("keys", n, k), ("values", n, v)) for n, (k, v) in enumerate(zip(e.keys, e.values, strict=True))]
        return [one for pair in pairs for one in pair]
    if isinstance(e, (ast.Tuple, ast.List, ast.Set)):
        return [("elts", n, one) for n, one in enumerate(e.elts)]
    if isinstance(e, ast.JoinedStr):
        return [("formatted", n, one.value) for n, one in enumerate(e.values) if isinstance(one, ast.FormattedValue)]
    fields = _FIELDS.get(e.__class__)
    return None if fields is None else [(field, None, getattr(e, field)) for field in fields]


def _replace_child(node: Any, owner: str, place: Any, new: Any) -> None:
    """Replace an operand of a node."""
    if owner == "func.value":
        node.func = copy_node(node.func)
        node.func.value = new
    elif owner in ("keywords", "formatted"):
        items = node.keywords if owner == "keywords" else node.values
        items[place] = copy_node(items[place])
        items[place].value = new
    elif place is None:
        setattr(node, owner, new)
    else:
        getattr(node, owner)[place] = new


_FIELDS: dict[type, tuple[str, ...]] = {
    ast.Attribute: ("value",), ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",), ast.Constant: (), ast.Name: (),
}  # fmt: skip
_VALUE_FIELDS: dict[type, str] = {
    ast.Assign: "value", ast.AnnAssign: "value", ast.AugAssign: "value", ast.Expr: "value", ast.Return: "value",
    ast.Assert: "test", ast.Raise: "exc",
}  # fmt: skip
_READS = frozenset("item tolist numpy".split())
