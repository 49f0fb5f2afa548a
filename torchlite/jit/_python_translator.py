"""Translates TorchScript text to Python functions, from an allowlist of syntax.

The text is parsed by `ast`, and supported forms are translated to a new tree. Every non-local name becomes a name with
a dot, which no program can write, and the tree is compiled with empty builtins. Running code can therefore only call
operators (`_builtin_ops`), functions of the program, and the checked helpers `call` and `get`.
"""

from __future__ import annotations

import ast
import math
import types
from typing import Any

from .._types.devices import device as device_type
from .._types.python_source import compile_code
from .._types.python_source import parse as tree_of
from ._insert_deletions import insert_deletions, walk
from ._non_literal_argument import PLACEHOLDER

_MAX_DEPTH = 150  # maximum nesting depth
_INT64 = 1 << 63
ANNOTATED = frozenset(("annotate", "unchecked_cast"))

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "__and__",
    ast.BitOr: "__or__",
    ast.BitXor: "__xor__",
    ast.LShift: "__lshift__",
    ast.RShift: "__rshift__",
}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
# Builtins that a program calls by bare name.
PLAIN = frozenset(
    (
        "int float bool str complex print range len min max abs sorted list tuple dict enumerate zip reversed "
        "round hash "
        "ord chr hex oct bin divmod sum any all hasattr slice"
    ).split()
)
_NUMBERS = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}


class ProgramError(RuntimeError):
    """Unsupported syntax, or an undefined name."""


def parse(text: str, where: str) -> ast.Module:
    """Parse a text. Raise RuntimeError for a syntax error."""
    try:
        return tree_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ProgramError(f"{where} is no program: {type(error).__name__}: {str(error)[:200]}") from None


def dotted_name(node: ast.AST) -> str | None:
    """Return `a.b.c` as text, None for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class PythonTranslator:
    """Translator of one function. `names` resolves globals: `names.function(path)` returns the global name of a
    function or class, `names.operator(name)` validates an operator.
    """

    def __init__(self, names: Any, where: str, owner: Any = None):
        self._names, self._where = names, where
        self._owner = owner  # class of the method
        self._self: str | None = None
        self._locals: set[str] = set()
        self._depth = 0
        self._count = 0
        self._line = 1

    # -- functions ------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef, method: bool = False) -> types.FunctionType:
        """Return the Python function of a definition, with the globals of `names`."""
        arguments, defaults = self._translate_parameters(node)
        stored = _bound_names(node)
        self._locals = stored | {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
        if method and arguments.args:
            first = arguments.args[0].arg
            self._self = first if first not in stored else None
        body = insert_deletions(self._translate_block(node.body))
        definition = ast.FunctionDef(node.name, arguments, body or [ast.Pass()], [], None, None)
        tree = ast.Module([definition], [])
        inner = self._compile_function(tree, node)
        positional = arguments.args
        keyword = {a.arg: d for a, d in zip(arguments.kwonlyargs, defaults[len(positional) :], strict=True)}
        values = tuple(d[0] for d in defaults[: len(positional)] if d is not None)
        out = types.FunctionType(inner, self._names.globals, node.name, values)
        out.__kwdefaults__ = {name: d[0] for name, d in keyword.items() if d is not None} or None
        out.__module__ = self._names.module
        self._names.translated(out, tree, lambda: self._compile_function(tree, node))
        return out

    def _compile_function(self, tree: ast.Module, node: ast.AST) -> types.CodeType:
        """Return the code object of a translated function."""
        for part in walk(tree):
            if isinstance(part, (ast.expr, ast.stmt, ast.arg, ast.keyword)) and not hasattr(part, "lineno"):
                part.lineno, part.col_offset = 1, 0
                part.end_lineno, part.end_col_offset = 1, 0
        try:
            code = compile_code(tree, f"<TorchScript {self._where}>")
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, TypeError) as error:
            raise self.wrong(node, f"does not compile: {str(error)[:200]}") from None
        return next(c for c in code.co_consts if isinstance(c, types.CodeType))

    def _translate_parameters(self, node: ast.FunctionDef) -> tuple[ast.arguments, list]:
        a = node.args
        if a.vararg or a.kwarg or a.posonlyargs or node.decorator_list:
            raise self.wrong(node, "a function takes plain parameters only")
        for name in (*a.args, *a.kwonlyargs):
            self._check_name(name, name.arg)
        blank = [None] * (len(a.args) - len(a.defaults))
        defaults = [None if d is None else (self.constant(d),) for d in (*blank, *a.defaults, *a.kw_defaults)]
        plain = ast.arguments(
            [],
            [ast.arg(p.arg, None) for p in a.args],
            None,
            [ast.arg(p.arg, None) for p in a.kwonlyargs],
            [None] * len(a.kwonlyargs),
            None,
            [],
        )
        return plain, defaults

    def constant(self, node: ast.AST) -> Any:
        """Return the value of a literal expression."""
        if isinstance(node, ast.Constant):
            return self._check_constant(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
                return -value
        if isinstance(node, ast.Name) and node.id in _NUMBERS:
            return _NUMBERS[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [self.constant(item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
            return {self.constant(k): self.constant(v) for k, v in zip(node.keys, node.values, strict=True) if k}
        if isinstance(node, ast.Call) and dotted_name(node.func) == "annotate" and len(node.args) == 2:
            return self.constant(node.args[1])
        if isinstance(node, ast.Call) and dotted_name(node.func) == "torch.device" and not node.keywords:
            return device_type(*map(self.constant, node.args))
        path = dotted_name(node)
        if path is not None and path.startswith("__torch__."):
            member = self._names.member(path)
            if member is not None:
                return member
        if path is not None and path.startswith("CONSTANTS."):
            return self._names.constant(path)
        raise self.wrong(node, "a default is a literal")

    def _check_constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and not -_INT64 <= value <= 2 * _INT64:
            raise self.wrong(node, "an integer has 64 bits")
        if value is Ellipsis or isinstance(value, bytes):
            raise self.wrong(node, f"there is no {type(value).__name__} in TorchScript")
        return value

    def wrong(self, node: ast.AST, why: str) -> ProgramError:
        """Return an error at a node."""
        line = getattr(node, "lineno", None)
        return ProgramError(f"{why} ({self._where}" + (f", line {line})" if line else ")"))

    def _check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__") and name.endswith("__"):
            raise self.wrong(node, f"{name[:100]} is no name of a variable")

    # -- statements -----------------------------------------------------------------------

    def _translate_block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise self.wrong(statement, f"forms lie more than {_MAX_DEPTH} deep in each other")
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                raise self.wrong(statement, f"there is no {type(statement).__name__} in TorchScript")
            made = handler(self, statement)
            for part in made:
                ast.copy_location(part, statement)
            out += made
            self._depth -= 1
        return out

    def _assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.expression(node.value)
        if len(node.targets) == 1:
            return self._translate_store(node.targets[0], value)
        keep = self._new_local_name()
        out: list[ast.stmt] = [ast.Assign([ast.Name(keep, ast.Store())], value)]
        for target in node.targets:
            out += self._translate_store(target, ast.Name(keep, ast.Load()))
        return out

    def _new_local_name(self) -> str:
        self._count += 1
        return f"local.{self._count}"

    def _translate_store(self, target: ast.AST, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            self._check_name(target, target.id)
            return [ast.Assign([ast.Name(target.id, ast.Store())], value)]
        if isinstance(target, (ast.Tuple, ast.List)):
            names: list[ast.expr] = []
            later: list[ast.stmt] = []
            for part in target.elts:
                if isinstance(part, ast.Name):
                    self._check_name(part, part.id)
                    names.append(ast.Name(part.id, ast.Store()))
                else:
                    keep = self._new_local_name()
                    names.append(ast.Name(keep, ast.Store()))
                    later += self._translate_store(part, ast.Name(keep, ast.Load()))
            return [ast.Assign([ast.Tuple(names, ast.Store())], value), *later]
        if isinstance(target, ast.Subscript):
            return [
                ast.Expr(
                    self._call_operator("_set_item", self.expression(target.value), self._index(target.slice), value)
                )
            ]
        if isinstance(target, ast.Attribute):
            place = self.expression(target.value)
            return [ast.Expr(self._call_runtime_helper("set", place, ast.Constant(target.attr), value))]
        raise self.wrong(target, f"nothing is assigned to a {type(target).__name__}")

    def _annotated(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            if isinstance(node.target, ast.Name):
                self._check_name(node.target, node.target.id)
            return [ast.Pass()]
        return self._translate_store(node.target, self._cast_to_type(node.annotation, self.expression(node.value)))

    def _augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        name = _BINARY.get(type(node.op))
        if name is None:
            raise self.wrong(node, "there is no such assignment in TorchScript")
        value = self.expression(node.value)
        target = node.target
        if isinstance(target, ast.Subscript):
            place, index = self._new_local_name(), self._new_local_name()
            keep: list[ast.stmt] = [
                ast.Assign([ast.Name(place, ast.Store())], self.expression(target.value)),
                ast.Assign([ast.Name(index, ast.Store())], self._index(target.slice)),
            ]
            load = ast.Name(place, ast.Load()), ast.Name(index, ast.Load())
            now = self._call_runtime_helper("change", ast.Constant(name), ast.Subscript(*load, ast.Load()), value)
            return [*keep, ast.Expr(self._call_operator("_set_item", *load, now))]
        load_node = ast.copy_location(type(target)(**{**dict(ast.iter_fields(target)), "ctx": ast.Load()}), target)
        now = self._call_runtime_helper("change", ast.Constant(name), self.expression(load_node), value)
        return self._translate_store(target, now)

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        return [ast.Return(None if node.value is None else self.expression(node.value))]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        return [
            ast.If(self.expression(node.test), self._translate_block(node.body), self._translate_block(node.orelse))
        ]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            raise self.wrong(node, "a loop has no else in TorchScript")
        return [ast.While(self.expression(node.test), self._translate_block(node.body), [])]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            raise self.wrong(node, "a loop has no else in TorchScript")
        source = self.expression(node.iter)
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "own.range":
            source.func = self._global("plain.range")
        else:
            source = self._call_runtime_helper("iterate", source)
        if isinstance(node.target, ast.Name):
            self._check_name(node.target, node.target.id)
            return [ast.For(ast.Name(node.target.id, ast.Store()), source, self._translate_block(node.body), [])]
        keep = self._new_local_name()
        first = self._translate_store(node.target, ast.Name(keep, ast.Load()))
        return [ast.For(ast.Name(keep, ast.Store()), source, [*first, *self._translate_block(node.body)], [])]

    def _with(self, node: ast.With) -> list[ast.stmt]:
        items = []
        for item in node.items:
            name = item.optional_vars
            if name is not None and not isinstance(name, ast.Name):
                raise self.wrong(node, "`with` binds one name")
            target = None
            if name is not None:
                self._check_name(name, name.id)
                target = ast.Name(name.id, ast.Store())
            items.append(ast.withitem(self._call_runtime_helper("context", self.expression(item.context_expr)), target))
        return [ast.With(items, self._translate_block(node.body))]

    def _expression_statement(self, node: ast.Expr) -> list[ast.stmt]:
        return [ast.Expr(self.expression(node.value))]

    def _assert(self, node: ast.Assert) -> list[ast.stmt]:
        said = ast.Constant("") if node.msg is None else self.expression(node.msg)
        fail = ast.Expr(self._call_runtime_helper("failed", said))
        return [ast.If(self.expression(node.test), [ast.Pass()], [fail])]

    def _raise(self, node: ast.Raise) -> list[ast.stmt]:
        made = node.exc
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or len(made.args) > 1:
            raise self.wrong(node, "an exception is raised with one message")
        said = self.expression(made.args[0]) if made.args else ast.Constant("")
        return [ast.Expr(self._call_runtime_helper("raise", said, ast.Constant(f"builtins.{made.func.id}")))]

    def _delete(self, node: ast.Delete) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                out.append(
                    ast.Expr(self._call_operator("Delete", self.expression(target.value), self._index(target.slice)))
                )
            elif not isinstance(target, ast.Name):
                raise self.wrong(node, "`del` takes an item")
        return out or [ast.Pass()]

    def _inner_function(self, node: ast.FunctionDef) -> list[ast.stmt]:
        before = self._self
        self._check_name(node, node.name)
        if node.name in self._locals and any(node.name == a.arg for a in node.args.args):
            raise self.wrong(node, "a function has its parameter's name")
        arguments, defaults = self._translate_parameters(node)
        if any(d is not None for d in defaults):
            raise self.wrong(node, "an inner function has no defaults")
        if any(a.arg == self._self for a in arguments.args):
            self._self = None
        made = ast.FunctionDef(node.name, arguments, self._translate_block(node.body) or [ast.Pass()], [], None, None)
        self._self = before
        return [made]

    # -- expressions ----------------------------------------------------------------------

    def expression(self, node: ast.AST) -> ast.expr:
        """Translate an expression."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.wrong(node, f"forms lie more than {_MAX_DEPTH} deep in each other")
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.wrong(node, f"there is no {type(node).__name__} in TorchScript")
        out = handler(self, node)
        if hasattr(node, "lineno"):
            ast.copy_location(out, node)
        self._depth -= 1
        return out

    def _call_operator(self, operator: str, *args: ast.expr) -> ast.expr:
        return self._call_site_of(self._names.operator(f"torch.{operator}"), list(args), [])

    def _call_site_of(self, name: str, args: list, keywords: list, method: bool = False) -> ast.expr:
        """Translate a call of an operator or method to a caching call site."""
        changes = method or self._names.changes(name)  # the callee may mutate arguments, so each call needs fresh ones
        given: list[ast.expr] = []
        known = None if method or keywords else self._names.known(name, args)
        if known is not None:
            return self._global(known)
        items = [_split_argument(a, given, place > 0, changes) for place, a in enumerate(args)]
        named = [(k.arg, _split_argument(k.value, given, True, changes)) for k in keywords]
        place = self._names.place(name, items, named, method)
        inner = given[0] if len(given) == 1 else None
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            joined = self._names.joined(place, inner.func.id)
            if joined is not None:
                place, given = joined, inner.args
        return ast.Call(self._global(place), given, [])

    def _call_runtime_helper(self, name: str, *args: ast.expr) -> ast.expr:
        return ast.Call(self._global(f"own.{name}"), list(args), [])

    def _global(self, name: str) -> ast.Name:
        return ast.Name(name, ast.Load())

    def _literal(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(self._check_constant(node))

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._locals:
            self._check_name(node, node.id)
            return ast.Name(node.id, ast.Load())
        if node.id in _NUMBERS:
            return self._global(f"number.{node.id}")
        raise self.wrong(node, f"undefined value {node.id[:100]}")

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        path = dotted_name(node)
        root = path.partition(".")[0] if path else None
        if path is not None and root is not None and root not in self._locals:
            if root == "__torch__":
                return self._global(self._names.value(path, self.wrong, node))
            if root == "CONSTANTS" and path.count(".") == 1:
                self._names.constant(path)
                return self._global(path)
            if root == "torch":
                return self._global(self._names.attribute(path, self.wrong, node))
        owner = self._class_of(node.value)
        place = None if owner is None else self._names.tables(owner).get(node.attr)
        if place == "constants":
            return ast.Constant(owner.constants[node.attr])
        if owner is not None and node.attr == "training":
            return ast.Attribute(self.expression(node.value), "training", ast.Load())
        if place is not None:
            table = ast.Attribute(self.expression(node.value), place, ast.Load())
            return ast.Subscript(table, ast.Constant(node.attr), ast.Load())
        return self._call_runtime_helper("get", self.expression(node.value), ast.Constant(node.attr))

    def _class_of(self, node: ast.AST) -> Any:
        """Return the module class of an expression if its text determines it: `self` and its submodules."""
        if isinstance(node, ast.Name):
            return self._owner if node.id == self._self is not None else None
        name: Any = None
        if isinstance(node, ast.Attribute):
            owner, name = self._class_of(node.value), node.attr
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "getattr" and len(node.args) == 2:
            owner, name = self._class_of(node.args[0]), getattr(node.args[1], "value", None)
        else:
            return None
        return None if owner is None else self._names.module_class(owner, name)

    def _subscript(self, node: ast.Subscript) -> ast.expr:
        index = self._index(node.slice)
        if not isinstance(index, (ast.Constant, ast.Slice, ast.UnaryOp)):
            index = self._translate_key(index)
        return ast.Subscript(self.expression(node.value), index, ast.Load())

    def _translate_key(self, key: ast.expr) -> ast.expr:
        """Translate a dictionary key; keys of uncommon classes are checked to be hashable."""
        if isinstance(key, ast.Constant):
            return key
        checked = self._call_runtime_helper("key", key)
        if not isinstance(key, ast.Name):
            return checked
        plain = ast.Compare(ast.Attribute(key, "__class__", ast.Load()), [ast.In()], [self._global("own.plain_keys")])
        return ast.IfExp(plain, key, checked)

    def _index(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.Slice):
            return ast.Slice(*[None if p is None else self.expression(p) for p in (node.lower, node.upper, node.step)])
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return ast.Constant(Ellipsis)
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._index(item) for item in node.elts], ast.Load())
        return self.expression(node)

    def _sequence(self, node: ast.List | ast.Tuple) -> ast.expr:
        return type(node)([self.expression(item) for item in node.elts], ast.Load())

    def _dict(self, node: ast.Dict) -> ast.expr:
        if any(key is None for key in node.keys):
            raise self.wrong(node, "there is no ** in TorchScript")
        keys: list[ast.expr | None] = [self._translate_key(self.expression(k)) for k in node.keys if k is not None]
        return ast.Dict(keys, [self.expression(v) for v in node.values])

    def _unary(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float, complex):
                return ast.UnaryOp(ast.USub(), ast.Constant(self._check_constant(node.operand)))
            if isinstance(node.operand, ast.Name) and node.operand.id in _NUMBERS:
                return ast.UnaryOp(ast.USub(), self._global(f"number.{node.operand.id}"))
            return self._call_operator("neg", self.expression(node.operand))
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self.expression(node.operand))
        if isinstance(node.op, ast.Invert):
            return self._call_operator("bitwise_not", self.expression(node.operand))
        raise self.wrong(node, "there is no such operator in TorchScript")

    def _binary(self, node: ast.BinOp) -> ast.expr:
        name = _BINARY.get(type(node.op))
        if name is None:
            raise self.wrong(node, "there is no such operator in TorchScript")
        return self._call_operator(name, self.expression(node.left), self.expression(node.right))

    def _both(self, node: ast.BoolOp) -> ast.expr:
        return ast.BoolOp(type(node.op)(), [self.expression(v) for v in node.values])

    def _compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1:
            raise self.wrong(node, "a comparison has two sides in TorchScript")
        kind, left, right = type(node.ops[0]), self.expression(node.left), self.expression(node.comparators[0])
        if kind in _COMPARE:
            return self._call_operator(_COMPARE[kind], left, right)
        if kind in (ast.Is, ast.IsNot):
            return ast.Compare(left, [kind()], [right])
        found = self._call_operator("__contains__", right, left)
        return found if kind is ast.In else ast.UnaryOp(ast.Not(), found)

    def _choice(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.expression(node.test), self.expression(node.body), self.expression(node.orelse))

    def _comprehension(self, node: ast.ListComp | ast.DictComp) -> ast.expr:
        loop = node.generators[0]
        if len(node.generators) != 1 or loop.ifs or loop.is_async:
            raise self.wrong(node, "a comprehension has one loop and no condition")
        names = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        if not all(isinstance(n, ast.Name) for n in names):
            raise self.wrong(node, "a comprehension binds names")
        for name in names:
            self._check_name(name, name.id)  # type: ignore[attr-defined]
        stored: list[ast.expr] = [ast.Name(n.id, ast.Store()) for n in names]  # type: ignore[attr-defined]
        target = stored[0] if not isinstance(loop.target, ast.Tuple) else ast.Tuple(stored, ast.Store())
        made = ast.comprehension(target, self._call_runtime_helper("iterate", self.expression(loop.iter)), [], 0)
        if isinstance(node, ast.DictComp):
            return ast.DictComp(self._translate_key(self.expression(node.key)), self.expression(node.value), [made])
        return ast.ListComp(self.expression(node.elt), [made])

    def _call(self, node: ast.Call) -> ast.expr:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.wrong(node, "there is no * in a call of TorchScript")
        if isinstance(node.func, ast.Name):
            return self._plain_call(node, node.func.id)
        args = [self.expression(a) for a in node.args] if not isinstance(node.func, ast.Name) else []
        keywords = [ast.keyword(k.arg, self.expression(k.value)) for k in node.keywords]
        for k in keywords:
            self._check_name(node, k.arg or "")
        path = dotted_name(node.func)
        root = path.partition(".")[0] if path else None
        if path is not None and root not in self._locals:
            if root == "__torch__":
                return self._program_call(node, path, args, keywords)
            if root in ("torch", "ops"):
                return self._call_site_of(self._names.operator(path, self.wrong, node), args, keywords)
        if not isinstance(node.func, ast.Attribute):
            return ast.Call(self._global("own.invoke"), [self.expression(node.func), *args], keywords)
        place, name = self.expression(node.func.value), node.func.attr
        owner = self._class_of(node.func.value)
        if owner is not None:
            if self._names.has_method(owner, name):
                return ast.Call(self._global(f"{owner.name}.{name}"), [place, *args], keywords)
            return ast.Call(self._global("own.call"), [place, ast.Constant(name), *args], keywords)
        return self._call_site_of(name, [place, *args], keywords, True)

    def _program_call(self, node: ast.Call, path: str, args: list, keywords: list) -> ast.expr:
        if path.endswith(".__new__"):
            return ast.Call(self._global("own.new"), [self._global(self._names.cls(path[:-8], self.wrong, node))], [])
        return ast.Call(self._global(self._names.value(path, self.wrong, node)), args, keywords)

    def _plain_call(self, node: ast.Call, name: str) -> ast.expr:
        if name in ANNOTATED and len(node.args) == 2:
            return self._cast_to_type(node.args[0], self.expression(node.args[1]))
        if name == "uninitialized":
            return ast.Constant(None)
        if name == "isinstance" and len(node.args) == 2:
            kind = self._names.types(node.args[1], self.wrong)
            return self._call_runtime_helper("isinstance", self.expression(node.args[0]), self._global(kind))
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            attr = node.args[1].value
            if not isinstance(attr, str):
                raise self.wrong(node, "an attribute's name is text")
            attribute = ast.copy_location(ast.Attribute(node.args[0], attr, ast.Load()), node)
            return self.expression(attribute)
        args = [self.expression(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.expression(k.value)) for k in node.keywords]
        for k in keywords:
            self._check_name(node, k.arg or "")
        if name == "fork":
            return ast.Call(self._global("own.fork"), args, keywords)
        if name in self._locals:
            return ast.Call(self._global("own.invoke"), [ast.Name(name, ast.Load()), *args], keywords)
        if name == "range":
            return ast.Call(self._global("own.range"), args, keywords)
        if name in PLAIN:
            return ast.Call(self._global(f"plain.{name}"), args, keywords)
        raise self.wrong(node, f"undefined value {name[:100]}")

    def _cast_to_type(self, kind: ast.AST, value: ast.expr) -> ast.expr:
        """Convert a value to a type: a one-element tensor to a number if needed."""
        if isinstance(kind, ast.Name) and kind.id in ("int", "float", "bool", "complex", "number"):
            if isinstance(value, ast.Constant):
                return value
            return self._call_runtime_helper("number", value, ast.Constant(kind.id))
        return value


def _split_argument(node: ast.expr, given: list[ast.expr], folds: bool, changes: bool) -> Any:
    """Return a call site argument: literal, list, or placeholder whose expression goes to `given`. A tuple becomes a
    list if the callee does not keep it (`changes`).
    """
    if folds and isinstance(node, ast.Constant) and node.value.__class__ in (int, float, bool, str, type(None)):
        return node.value
    if folds and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if isinstance(node.operand, ast.Constant) and node.operand.value.__class__ in (int, float):
            return -node.operand.value  # type: ignore[operator]
    if isinstance(node, ast.List if changes else (ast.List, ast.Tuple)) and 0 < len(node.elts) < 7:
        return [_split_argument(one, given, True, True) for one in node.elts]
    given.append(node)
    return PLACEHOLDER


def _bound_names(node: ast.AST) -> set[str]:
    """Return the names bound in a function body, including inner functions'."""
    found = set()
    nodes = walk(node)
    declared = {id(part.target) for part in nodes if isinstance(part, ast.AnnAssign) and part.value is None}
    for part in nodes:
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and id(part) not in declared:
            found.add(part.id)
        elif isinstance(part, ast.FunctionDef) and part is not node:
            found.add(part.name)
            found |= {a.arg for a in part.args.args}
    return found


_STATEMENTS: dict[type, Any] = {
    ast.Assign: PythonTranslator._assign,
    ast.AnnAssign: PythonTranslator._annotated,
    ast.AugAssign: PythonTranslator._augmented,
    ast.Return: PythonTranslator._return,
    ast.If: PythonTranslator._if,
    ast.While: PythonTranslator._while,
    ast.For: PythonTranslator._for,
    ast.With: PythonTranslator._with,
    ast.Expr: PythonTranslator._expression_statement,
    ast.Assert: PythonTranslator._assert,
    ast.Raise: PythonTranslator._raise,
    ast.Delete: PythonTranslator._delete,
    ast.FunctionDef: PythonTranslator._inner_function,
    ast.Pass: lambda self, node: [ast.Pass()],
    ast.Break: lambda self, node: [ast.Break()],
    ast.Continue: lambda self, node: [ast.Continue()],
}
_EXPRESSIONS: dict[type, Any] = {
    ast.Constant: PythonTranslator._literal,
    ast.Name: PythonTranslator._name,
    ast.Attribute: PythonTranslator._attribute,
    ast.Subscript: PythonTranslator._subscript,
    ast.List: PythonTranslator._sequence,
    ast.Tuple: PythonTranslator._sequence,
    ast.Dict: PythonTranslator._dict,
    ast.UnaryOp: PythonTranslator._unary,
    ast.BinOp: PythonTranslator._binary,
    ast.BoolOp: PythonTranslator._both,
    ast.Compare: PythonTranslator._compare,
    ast.IfExp: PythonTranslator._choice,
    ast.ListComp: PythonTranslator._comprehension,
    ast.DictComp: PythonTranslator._comprehension,
    ast.Call: PythonTranslator._call,
}
