"""The semantic mutations of a file: edits of its text that change what one expression or statement means."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.Pow: ("**", "*"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One edit: the characters from `start` to `stop` become `text`."""

    path: str
    line: int
    start: int
    stop: int
    text: str
    kind: str
    in_function: bool
    op: str = ""  # the op whose record it is in

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.stop :]

    def changed_lines(self, source: str) -> tuple[str, str]:
        """The lines with the edit, before and after it, on one line each."""
        begin = source.rfind("\n", 0, self.start) + 1
        end = source.find("\n", self.stop)
        end = len(source) if end < 0 else end
        before, after = source[begin:end], source[begin : self.start] + self.text + source[self.stop : end]
        return " ".join(before.split()), " ".join(after.split())


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str):
        self.path, self.source = path, source
        self.found: list[Mutation] = []
        self.depth, self.op = 0, ""
        # ast counts columns in bytes of UTF-8.
        self.lines = [line + "\n" for line in source.split("\n")]
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self.offsets[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined, arg-type]

    def text(self, node: ast.AST) -> str:
        start, stop = self.span(node)
        return self.source[start:stop]

    def add(self, kind: str, line: int, start: int, stop: int, text: str) -> None:
        self.found.append(Mutation(self.path, line, start, stop, text, kind, self.depth > 0, self.op))

    def replace(self, kind: str, node: ast.AST, text: str) -> None:
        self.add(kind, node.lineno, *self.span(node), text)  # type: ignore[attr-defined]

    def between(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """Replace the operator that stands between two operands."""
        start, stop = self.span(left)[1], self.span(right)[0]
        place = self.source[start:stop].find(old)
        if place >= 0 and "#" not in self.source[start : start + place]:
            begin = start + place
            self.add(kind, left.end_lineno, begin, begin + len(old), new)  # type: ignore[attr-defined]

    # Bodies

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.body(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.depth += 1
        self.visit(node.body)
        self.depth -= 1

    def body(self, statements: list[ast.stmt]) -> None:
        self.depth += 1
        for statement in statements:
            self.visit(statement)
        self.depth -= 1

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # Statements

    def visit_If(self, node: ast.If) -> None:
        if self.text(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return
        self.replace("condition", node.test, f"not ({self.text(node.test)})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and self.depth:
            self.replace("dropped statement", node, "pass")
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self.depth and all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self.replace("dropped statement", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace("dropped statement", node, "pass")
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.replace("dropped statement", node, "pass")  # what an error says is not its meaning

    def visit_Assert(self, node: ast.Assert) -> None:
        """Left alone: an assertion states what holds."""

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            name = self.text(item.context_expr)
            if "lock" in name.lower() and item.optional_vars is None:
                self.replace("lock", item.context_expr, '__import__("contextlib").nullcontext()')
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace("loop", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace("loop", node, "break")

    # Expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between("condition", left, right, old, new)
        for operand in node.values:  # each operand alone has no say
            self.replace("condition", operand, "True" if old == "and" else "False")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            self.between("operator", left, right, *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        pair = _OPERATORS.get(type(node.op))
        if pair is not None and not isinstance(node.left, (ast.JoinedStr, ast.Constant, ast.List, ast.Tuple)):
            self.between("operator", node.left, node.right, *pair)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.replace("condition", node, f"bool({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.replace("condition", node.test, f"not ({self.text(node.test)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value is True or node.value is False:
            self.replace("constant", node, str(not node.value))
        elif isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            self.replace("constant", node, f"({self.text(node)} + 1)")

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in ("strict", "stacklevel"):  # assertions, and where a warning points to
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Left alone: texts of messages."""

    def visit_Call(self, node: ast.Call) -> None:
        outer = self.op
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        first = node.args[0] if node.args else None
        if (
            not self.depth
            and isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and "(" in first.value[1:]
        ):
            self.op = (first.value.partition("(")[0].split() or [""])[-1]  # op("name(Tensor input, ...)", ...)
        plain = [argument for argument in node.args if not isinstance(argument, (ast.Starred, ast.Constant))]
        if name not in ("isinstance", "issubclass", "getattr", "hasattr", "cast", "TypeVar"):
            for left, right in zip(node.args, node.args[1:], strict=False):
                if left in plain and right in plain and self.text(left) != self.text(right):
                    start, stop = self.span(left)[0], self.span(right)[1]
                    middle = self.source[self.span(left)[1] : self.span(right)[0]]
                    self.add("swapped arguments", left.lineno, start, stop, self.text(right) + middle + self.text(left))
        self.generic_visit(node)
        self.op = outer


def mutations_of(path: str, source: str) -> list[Mutation]:
    """All mutations of a file's text whose result is Python."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return list(_valid(finder.found, source))


def _valid(found: list[Mutation], source: str) -> Iterator[Mutation]:
    for mutation in found:
        old, new = mutation.changed_lines(source)
        if old != new:
            yield mutation


def compiles(text: str) -> bool:
    """Whether a mutated text is Python: tested for those that are drawn alone."""
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
