"""A program's text from Python's: the user's own statements, with names resolved to what they mean.

Nothing is inferred: the importer of programs knows operators, slices and methods of tensors itself. What is no
TorchScript
is refused here with PyTorch's errors.
"""

from __future__ import annotations

import ast
import builtins
import copy
import enum
import inspect
import math
import textwrap
import types
import typing
from typing import Any

import torchlite as torch

from .._dispatch.call import Tensor
from .._jit_internal import is_ignored_fn, should_drop
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import layout, memory_format
from ._codes import code_of
from ._language import PLAIN
from ._modules import ScriptFunction
from ._nn_texts import FUNCTIONS
from ._saving import type_of
from ._tracing import path_of
from ._writer import NotSupportedError, UnsupportedNodeError, Writer, source_of

_LATER = object()
_UNSUPPORTED: dict[type, str] = {
    ast.Try: "try blocks aren't",
    ast.Lambda: "lambda functions aren't",
    ast.Yield: "yield expressions aren't",
    ast.YieldFrom: "yield from expressions aren't",
    ast.Await: "await expressions aren't",
    ast.Global: "global variables aren't",
    ast.Nonlocal: "nonlocal variables aren't",
    ast.ClassDef: "class definitions aren't",
    ast.Import: "import statements aren't",
    ast.ImportFrom: "import statements aren't",
    ast.AsyncFunctionDef: "async function definitions aren't",
    ast.SetComp: "set comprehensions aren't",
    ast.GeneratorExp: "generator expressions aren't",
    ast.Set: "set literals aren't",
    ast.NamedExpr: "named expressions aren't",
    ast.Match: "match statements aren't",
}
_MATH = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
_POOLS = frozenset(("max_pool1d", "max_pool2d", "max_pool3d"))


class Printer(ast.NodeTransformer):
    """Rewrites one function. `module` is what `self` is, where it is a module."""

    def __init__(self, writer: Writer, function: Any, module: Any, owner: str | None = None):
        self._writer, self._function, self._module, self._owner = writer, function, module, owner
        self._node, self._text = source_of(function)
        self._self: str | None = None
        self._bound: dict[str, tuple[str, Any]] = {}  # loop variables over modules: their expression and what they are
        self._objects: dict[str, type | None] = {}  # variables that have an object of a class of the user's
        self.fields: dict[str, str] = {}
        self.used: set[str] = set()  # methods of the module that are called
        closure = inspect.getclosurevars(function) if not isinstance(function, types.MethodType) else None
        plain = inspect.unwrap(function)
        self._globals = {**plain.__globals__, **(closure.nonlocals if closure is not None else {})}
        self._locals = {n.id for n in ast.walk(self._node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._locals |= {a.arg for a in self._node.args.args} | {a.arg for a in self._node.args.kwonlyargs}

    def definition(self, name: str) -> str:
        """The function's text, under a name."""
        node = self._node
        if node.args.vararg or node.args.kwarg:
            raise self.wrong(
                node,
                "Compiled functions can't take variable number of arguments or use keyword-only arguments with "
                "defaults",
            )
        if any(d is not None for d in node.args.kw_defaults):
            raise self.wrong(
                node,
                "Compiled functions can't take variable number of arguments or use keyword-only arguments with "
                "defaults",
            )
        try:
            hints = typing.get_type_hints(self._function, {**self._globals})
        except (NameError, TypeError) as error:
            raise RuntimeError(f"Unknown type name: {error}") from None
        args = [*node.args.args, *node.args.kwonlyargs]
        if self._module is not None or self._owner is not None:
            self._self = args[0].arg
            first = [f"{self._self}" + (f": {self._owner}" if self._owner else "")]
            args = args[1:]
        else:
            first = []
        comment = self._type_comment()
        blank = len(node.args.args) + len(node.args.kwonlyargs) - len(node.args.defaults)
        texts = []
        for place, a in enumerate(args):
            kind = (
                comment[0][place]
                if comment and place < len(comment[0])
                else self._writer.type(hints.get(a.arg, Tensor))
            )
            at = place + len(first) - blank
            default = "" if at < 0 else f"={self._default(node.args.defaults[at])}"
            texts.append(f"{a.arg}: {kind}{default}")
        result = (
            f" -> {comment[1]}" if comment else f" -> {self._writer.type(hints['return'])}" if "return" in hints else ""
        )
        if is_ignored_fn(self._function):
            said = f"The method {name} is left to Python (@unused or @ignore), and cannot be called in TorchScript"
            if not should_drop(self._function):
                self._writer.ignored.append(name)
            out = "" if result.endswith(" NoneType") else f"\n  return uninitialized({result[4:] or 'Tensor'})"
            head = f"def {name}({', '.join([*first, *texts])}){result or ' -> Tensor'}:\n"
            return f"{head}  ops.prim.RaiseException({said!r}){out}\n"
        body = self._block(node.body)
        text = "\n".join(ast.unparse(ast.fix_missing_locations(n)) for n in body) or "pass"
        return f"def {name}({', '.join([*first, *texts])}){result}:\n" + textwrap.indent(text, "  ") + "\n"

    def _type_comment(self) -> tuple[list[str], str] | None:
        """The types of a `# type: (Tensor, int) -> Tensor` below the definition's head."""
        for line in self._text.split("\n"):
            words = line.strip()
            if words.startswith("# type: (") and "->" in words:
                left, _, right = words.removeprefix("# type:").partition("->")
                tree = ast.parse(left.strip(), mode="eval").body
                parts = tree.elts if isinstance(tree, ast.Tuple) else [tree] if left.strip() != "()" else []
                return [self._type_text(p) for p in parts], self._type_text(ast.parse(right.strip(), mode="eval").body)
        return None

    def _default(self, node: ast.expr) -> str:
        value = eval(compile(ast.Expression(node), "<default>", "eval"), self._globals)
        return self._literal(value)

    def wrong(self, node: ast.AST, why: str, kind: type = NotSupportedError) -> Exception:
        """An error with the line that it is about."""
        start = inspect.unwrap(self._function).__code__.co_firstlineno
        file = inspect.unwrap(self._function).__code__.co_filename
        line = getattr(node, "lineno", 1)
        shown = self._text.split("\n")[line - 1 : line]
        return kind(f'{why}:\n  File "{file}", line {start + line - 1}\n' + "\n".join(shown) + "\n    ~~~ <--- HERE")

    # -- names --------------------------------------------------------------------------------

    def _resolved(self, node: ast.AST) -> Any:
        """What an expression of global names means; `_LATER` for what only the run knows."""
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return self._bound[node.id][1]
            if node.id == self._self and self._module is not None:
                return self._module
            if node.id in self._locals:
                return _LATER
            if node.id in self._globals:
                return self._globals[node.id]
            return getattr(builtins, node.id, _LATER)
        if isinstance(node, ast.Attribute):
            owner = self._resolved(node.value)
            if owner is _LATER:
                return _LATER
            if isinstance(owner, torch.nn.Module):
                return getattr(owner, node.attr, _LATER)
            return (
                getattr(owner, node.attr, _LATER)
                if not isinstance(owner, (Tensor, int, float, str, list, dict))
                else _LATER
            )
        if isinstance(node, ast.Subscript):
            owner = self._resolved(node.value)
            if isinstance(owner, (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)) and isinstance(
                node.slice, ast.Constant
            ):
                return owner[node.slice.value]  # type: ignore[index]
        return _LATER

    def _module_path(self, node: ast.AST) -> str | None:
        """The expression of a submodule; None for other expressions."""
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return self._bound[node.id][0]
            return node.id if node.id == self._self else None
        if isinstance(node, ast.Attribute):
            base = self._module_path(node.value)
            return None if base is None else path_of((node.attr,), base)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner, base = self._resolved(node.value), self._module_path(node.value)
            if base is not None and isinstance(owner, torch.nn.Module):
                names = list(owner._modules)
                key = node.slice.value
                return path_of((names[key] if isinstance(key, int) else str(key),), base)
        return None

    def _expr(self, text: str) -> ast.expr:
        return ast.parse(text, mode="eval").body

    def _literal(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return f"{self._writer.cls(type(value))}.{value.name}"
        if isinstance(value, (dtypes.dtype, layout, memory_format)):
            return str(code_of(value))
        if isinstance(value, device_type):
            return f'torch.device("{value}")'
        if isinstance(value, float) and not math.isfinite(value):
            return "nan" if value != value else "inf" if value > 0 else "-inf"
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return repr(value)
        if isinstance(value, tuple):
            return f"({', '.join(map(self._literal, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._literal, value))}]"
        raise RuntimeError(
            f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is a closed "
            "over global variable? If so, please consider passing it in as an argument or use a local varible instead."
        )

    def visit_Name(self, node: ast.Name) -> Any:
        """A variable, a constant from outside, or a module that a loop goes over."""
        if isinstance(node.ctx, ast.Store) or node.id == self._self:
            return node
        if node.id in self._bound:
            return self._expr(self._bound[node.id][0])
        if node.id in self._locals or node.id in PLAIN:
            return node
        value = self._resolved(node)
        if value is _LATER:
            raise self.wrong(node, f"undefined value {node.id}", RuntimeError)
        return self._expr(self._literal(value))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """An attribute of a value; of modules and classes from outside what it means."""
        value = self._resolved(node)
        made = self._objects.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(getattr(made, node.attr, None), property):
            return self._expr(f"{node.value.id}.__{node.attr}_getter()")  # type: ignore[attr-defined]
        if value is _LATER:
            owner = self._resolved(node.value)
            if isinstance(owner, torch.nn.Module) and not hasattr(owner, node.attr):
                if isinstance(node.ctx, ast.Load):
                    raise self.wrong(
                        node, f"Module '{type(owner).__name__}' has no attribute '{node.attr}' ", RuntimeError
                    )
            if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == self._self:
                self.fields.setdefault(node.attr, "Tensor")
            return ast.Attribute(self.visit(node.value), node.attr, node.ctx)
        path = self._module_path(node)
        owner = self._resolved(node.value)
        if isinstance(owner, torch.nn.Module) and isinstance(getattr(type(owner), node.attr, None), property):
            if owner is self._module:
                self.used.add(node.attr)
            return self._expr(f"{self._module_path(node.value)}.__{node.attr}_getter()")
        if path is not None and not callable(value) or isinstance(value, torch.nn.Module) and path is not None:
            found = self._expr(path)
            if isinstance(found, ast.Attribute):
                found.ctx = node.ctx
            return found
        if path is not None and isinstance(value, types.MethodType):
            return self._expr(path)
        return self._expr(self._literal(value))

    # -- statements -----------------------------------------------------------------------------

    def _block(self, body: list) -> list:
        out: list[Any] = []
        for number, node in enumerate(body):
            if not number and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # what documents the function
            self._check(node)
            made = self.visit(node)
            if made is None:
                continue
            out += made if isinstance(made, list) else [made]
            if isinstance(made, ast.Return) and self._constant_block:
                break
        return out or [ast.Pass()]

    _constant_block = False

    def _check(self, node: ast.AST) -> None:
        said = _UNSUPPORTED.get(type(node))
        if said is not None:
            raise self.wrong(node, f"{said} supported", UnsupportedNodeError)

    def visit(self, node: ast.AST) -> Any:
        """A node, rewritten. UnsupportedNodeError for forms that TorchScript does not have."""
        self._check(node)
        return super().visit(node)

    def _known(self, node: ast.AST) -> bool | None:
        """The value of a condition that is known before the run; None for others."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._known(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.Call):
            called = self._resolved(node.func)
            name = getattr(called, "__name__", "")
            if name == "is_scripting" and called is not _LATER:
                return True
            if name == "is_tracing" and called is not _LATER:
                return False
            if called is hasattr and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
                owner = self._resolved(node.args[0])
                return None if owner is _LATER else hasattr(owner, str(node.args[1].value))
            if called is isinstance and len(node.args) == 2:
                value, kinds = self._resolved(node.args[0]), self._resolved(node.args[1])
                if isinstance(value, torch.nn.Module) and kinds is not _LATER:
                    return isinstance(value, kinds)
        if isinstance(node, ast.BoolOp):
            values = [self._known(v) for v in node.values]
            if isinstance(node.op, ast.And) and False in values:
                return False
            if isinstance(node.op, ast.Or) and True in values:
                return True
            return values[0] if None not in values else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            value = self._resolved(node.left)
            if (
                value is not _LATER
                and isinstance(node.comparators[0], ast.Constant)
                and (value is None or isinstance(value, (torch.nn.Module, Tensor)))
            ):
                return (value is None) is isinstance(node.ops[0], ast.Is)
        value = self._resolved(node) if isinstance(node, (ast.Name, ast.Attribute)) else _LATER
        if self._is_constant(node) and isinstance(value, bool):
            return value
        return None

    def _is_constant(self, node: ast.AST) -> bool:
        """Whether an expression is a setting that never changes."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._self:
            cls = type(self._module)
            finals = [n for n, t in getattr(cls, "__annotations__", {}).items() if "Final" in str(t)]
            return node.attr in (*getattr(cls, "__constants__", ()), *finals)
        return isinstance(node, ast.Name) and node.id not in self._locals

    def visit_If(self, node: ast.If) -> Any:
        """A condition; of one that is known before the run only the part that runs."""
        known = self._known(node.test)
        if known is not None:
            chosen = node.body if known else node.orelse
            return [n for n in self._block(chosen) if not isinstance(n, ast.Pass)] or ast.Pass()
        test = self.visit(node.test)
        return ast.If(test, self._block(node.body), self._block(node.orelse) if node.orelse else [])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """A choice between two expressions."""
        known = self._known(node.test)
        if known is not None:
            return self.visit(node.body if known else node.orelse)
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        """A loop; over modules once for each of them."""
        if node.orelse:
            raise self.wrong(node, "else branches of for loops aren't supported", UnsupportedNodeError)
        found = self._modules_of(node.iter)
        if found is None:
            return ast.For(self.visit(node.target), self.visit(node.iter), self._block(node.body), [])
        out: list[Any] = []
        for values in found:
            targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            for target, value in zip(targets, values if isinstance(node.target, ast.Tuple) else [values], strict=True):
                if isinstance(value, tuple):
                    self._bound[target.id] = value  # type: ignore[attr-defined]
                else:
                    self._bound.pop(target.id, None)  # type: ignore[attr-defined]
                    out.append(ast.Assign([ast.Name(target.id, ast.Store())], ast.Constant(value), lineno=0))  # type: ignore[attr-defined]
            out += self._block(copy.deepcopy(node.body))
        return out

    def _modules_of(self, node: ast.AST) -> Any:
        """What a loop over modules goes over: pairs (expression, module), with numbers or names beside them."""
        if isinstance(node, ast.Call):
            called = self._resolved(node.func)
            if called is enumerate:
                inner = self._modules_of(node.args[0])
                return None if inner is None else [(i, one) for i, one in enumerate(inner)]
            if called is zip:
                inners = [self._modules_of(a) for a in node.args]
                return None if any(i is None for i in inners) else list(zip(*inners, strict=False))
            if called is reversed:
                inner = self._modules_of(node.args[0])
                return None if inner is None else inner[::-1]
            if isinstance(node.func, ast.Attribute) and node.func.attr in (
                "items",
                "values",
                "keys",
                "children",
                "named_children",
            ):
                owner = self._resolved(node.func.value)
                path = self._module_path(node.func.value)
                if isinstance(owner, torch.nn.Module) and path is not None:
                    pairs = [(name, (path_of((name,), path), m)) for name, m in owner._modules.items()]
                    kind = node.func.attr
                    if kind in ("items", "named_children"):
                        return pairs
                    return [name for name, _ in pairs] if kind == "keys" else [one for _, one in pairs]
            return None
        owner, path = self._resolved(node), self._module_path(node)
        if isinstance(owner, (torch.nn.ModuleList, torch.nn.Sequential)) and path is not None:
            return [(path_of((name,), path), m) for name, m in owner._modules.items()]
        if isinstance(owner, torch.nn.ModuleDict) and path is not None:
            return list(owner._modules)
        return None

    def visit_While(self, node: ast.While) -> Any:
        """A loop with a condition."""
        if node.orelse:
            raise self.wrong(node, "else branches of while loops aren't supported", UnsupportedNodeError)
        return ast.While(self.visit(node.test), self._block(node.body), [])

    def visit_With(self, node: ast.With) -> Any:
        """A context: of `torch.no_grad()` its class in the program."""
        items = []
        for item in node.items:
            called = self._resolved(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else None
            if called is torch.no_grad:
                items.append(ast.withitem(self._expr(f"{self._writer.no_grad()}()"), item.optional_vars))
            else:
                items.append(ast.withitem(self.visit(item.context_expr), item.optional_vars))
        return ast.With(items, self._block(node.body))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """An assignment with a type."""
        kind = self._annotation(node.annotation)
        if isinstance(node.target, ast.Attribute):
            self.fields[node.target.attr] = kind
        if node.value is None:
            return None
        made = ast.Call(ast.Name("annotate", ast.Load()), [self._expr(kind), self.visit(node.value)], [])
        return ast.Assign([self.visit(node.target)], made, lineno=0)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """An assignment; the types of an object's new attributes are guessed from what they get."""
        target, *more = node.targets
        if more:  # `a = b = None`, as code of graphs lets go of values
            if not isinstance(target, ast.Name) or not all(isinstance(each, ast.Name) for each in more):
                raise self.wrong(node, "Performing multiple assignments in a single statement is not supported")
            first = self.visit_Assign(ast.copy_location(ast.Assign([target], node.value), node))
            again = [ast.Assign([self.visit(each)], self._expr(target.id), lineno=0) for each in more]
            return [*(first if isinstance(first, list) else [first]), *again]
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == self._self
            and self._owner
        ):
            self.fields.setdefault(target.attr, self._guessed(node.value))
        if isinstance(target, ast.Name):
            made = self._resolved(node.value.func) if isinstance(node.value, ast.Call) else None
            self._objects[target.id] = made if isinstance(made, type) else None
        value = self.visit(node.value)
        return ast.Assign([self.visit(target)], value, lineno=0)

    def _guessed(self, node: ast.AST) -> str:
        if isinstance(node, ast.Constant):
            return type_of(node.value)
        if isinstance(node, ast.Name):
            hints = typing.get_type_hints(self._function, self._globals)
            return self._writer.type(hints.get(node.id, Tensor))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("int", "float", "bool", "str")
        ):
            return node.func.id
        return "Tensor"

    def _annotation(self, node: Any) -> str:
        value = eval(
            compile(ast.Expression(node), "<annotation>", "eval"),
            {**self._globals, "torch": self._globals.get("torch", torch)},
        )
        if isinstance(value, str):
            return self._annotation(ast.parse(value, mode="eval").body)
        return self._writer.type(value)

    _type_text = _annotation

    def visit_Raise(self, node: ast.Raise) -> Any:
        """An exception: its message after its name."""
        made = node.exc
        name, said = "Exception", None
        if isinstance(made, ast.Call):
            name = ast.unparse(made.func)
            said = self.visit(made.args[0]) if made.args else None
        elif made is not None:
            name = ast.unparse(made)
        kind = f"builtins.{name.rpartition('.')[2]}"
        call = ast.Call(self._expr("ops.prim.RaiseException"), [said or ast.Constant(""), ast.Constant(kind)], [])
        return [ast.Expr(call), ast.Assert(ast.Constant(False), ast.Constant(name))]

    def visit_Delete(self, node: ast.Delete) -> Any:
        """`del`: of names nothing is to be done."""
        targets = [t for t in node.targets if not isinstance(t, ast.Name)]
        return ast.Delete([self.visit(t) for t in targets]) if targets else ast.Pass()

    # -- expressions ------------------------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """An f-string as `format`."""
        text, values = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if part.conversion != -1 or part.format_spec is not None:
                    raise self.wrong(node, "Don't support format specs or conversions in JoinedStr")
                text += "{}"
                values.append(self.visit(part.value))
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, [])

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """A list of a loop's values; over modules one item each."""
        if len(node.generators) != 1:
            raise self.wrong(node, "Only a single generator is currently supported")
        loop = node.generators[0]
        if loop.ifs:
            raise self.wrong(node, "Comprehension ifs are not supported yet")
        found = self._modules_of(loop.iter)
        if found is None or not isinstance(loop.target, ast.Name):
            return self._comprehension(node)
        items = []
        for value in found:
            self._bound[loop.target.id] = value
            items.append(self.visit(copy.deepcopy(node.elt)))
        self._bound.pop(loop.target.id, None)
        return ast.List(items, ast.Load())

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        """A dict of a loop's keys and values."""
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise self.wrong(node, "Comprehension ifs are not supported yet")
        return self._comprehension(node)

    def _comprehension(self, node: Any) -> Any:
        loop = node.generators[0]
        if not isinstance(loop.target, ast.Tuple):
            return self.generic_visit(node)
        loop.iter = self.visit(loop.iter)
        names = [n.id for n in loop.target.elts]  # type: ignore[attr-defined]
        item = "item_of_" + "_".join(names)
        self._locals.add(item)
        before = dict(self._bound)
        self._bound |= {n: (f"{item}[{i}]", _LATER) for i, n in enumerate(names)}
        loop.target = ast.Name(item, ast.Store())
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self._bound = before
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """A comparison: of three values as two of two."""
        if len(node.ops) == 1:
            return self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return ast.BoolOp(ast.And(), [self.generic_visit(p) for p in pairs])

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """An item; of containers of modules the module."""
        value = self._resolved(node)
        path = self._module_path(node) if isinstance(value, torch.nn.Module) else None
        return self._expr(path) if path is not None else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """A call of an operator, a function, a class, a module or a method."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.wrong(
                node,
                "keyword-arg expansion is not supported"
                if any(k.arg is None for k in node.keywords)
                else "cannot use starred expressions in a call",
            )
        called = self._resolved(node.func)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            raise self.wrong(node, "super() is not supported", RuntimeError)
        if called is _LATER:
            if isinstance(node.func, ast.Attribute):
                owner = self._resolved(node.func.value)
                if isinstance(owner, types.ModuleType):
                    said = (
                        f"module '{owner.__name__.replace('torchlite', 'torch', 1)}' has no attribute "
                        f"'{node.func.attr}'"
                    )
                    raise self.wrong(node, said, RuntimeError)
                made = ast.Attribute(self.visit(node.func.value), node.func.attr, ast.Load())
                return self._with(made, node)
            return self._with(self.visit(node.func), node)
        special = self._special(called, node)
        if special is not None:
            return special
        return self._with(self._expr(self._callable(called, node)), node)

    def _with(self, function: ast.expr, node: ast.Call) -> ast.Call:
        return ast.Call(
            function,
            [self.visit(a) for a in node.args],
            [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords],
        )

    def _special(self, called: Any, node: ast.Call) -> Any:
        name, module = getattr(called, "__name__", ""), getattr(called, "__module__", "") or ""
        of_jit = module.startswith("torchlite.jit") or module.endswith("_jit_internal")
        if called is isinstance or of_jit and name in ("isinstance", "_isinstance"):
            known = self._known(node)
            if known is not None:
                return ast.Constant(known)
            return ast.Call(
                ast.Name("isinstance", ast.Load()), [self.visit(node.args[0]), self._kinds(node.args[1])], []
            )
        if of_jit and name == "annotate":
            return ast.Call(
                ast.Name("annotate", ast.Load()),
                [self._expr(self._annotation(node.args[0])), self.visit(node.args[1])],
                [],
            )
        if of_jit and name in ("is_scripting", "is_tracing"):
            return ast.Constant(name == "is_scripting")
        if of_jit and name == "_unwrap_optional":
            return ast.Call(self._expr("ops.prim.unchecked_unwrap_optional"), [self.visit(node.args[0])], [])
        if of_jit and name == "fork":
            return ast.Call(
                ast.Name("fork", ast.Load()), [self._forked(node.args[0]), *map(self.visit, node.args[1:])], []
            )
        if of_jit and name == "wait":
            return ast.Call(self._expr("torch.wait"), [self.visit(node.args[0])], [])
        if called is typing.cast:
            return self.visit(node.args[1])
        if called in (hasattr, getattr) and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            if called is hasattr:
                known = self._known(node)
                return ast.Constant(bool(known)) if known is not None else None
            return self.visit(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()))
        if name == "interpolate" and module.startswith("torchlite"):
            return self._interpolate(node)
        if name in _POOLS and module.startswith("torchlite"):
            return self._pooled(name, node)
        return None

    def _forked(self, node: ast.AST) -> ast.expr:
        value = self._resolved(node)
        return self.visit(node) if value is _LATER else self._expr(self._callable(value, node))

    def _kinds(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._kinds(part) for part in node.elts], ast.Load())
        return self._expr(self._annotation(node))

    def _interpolate(self, node: ast.Call) -> ast.expr:
        names = ["input", "size", "scale_factor", "mode", "align_corners"]
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
        mode = given.get("mode")
        kind = mode.value if isinstance(mode, ast.Constant) else "nearest"
        dims = {"linear": 1, "trilinear": 3}.get(str(kind), 2)
        for name in ("size", "scale_factor"):
            value = given.get(name)
            if isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
                number = float(value.value) if name == "scale_factor" else value.value
                given[name] = ast.List([ast.Constant(number)] * dims, ast.Load())
        function = self._expr(self._writer.library_function("interpolate"))
        keywords = [ast.keyword(n, self.visit(v)) for n, v in given.items() if n in names and n != "input"]
        return ast.Call(function, [self.visit(given["input"])], keywords)

    def _pooled(self, name: str, node: ast.Call) -> ast.expr:
        """`max_pool2d(x, 2)`: without a stride, windows lie side by side."""
        names = ["input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"]
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
        indices = given.pop("return_indices", None)
        if indices is not None and self._known(indices) is not False:
            name += "_with_indices"
        stride = given.get("stride")
        if stride is None or isinstance(stride, ast.Constant) and stride.value is None:
            given["stride"] = given["kernel_size"]
        plain = {"padding": ast.Constant(0), "dilation": ast.Constant(1), "ceil_mode": ast.Constant(False)}
        return ast.Call(self._expr(f"torch.{name}"), [self.visit({**plain, **given}[n]) for n in names[:-1]], [])

    def _callable(self, called: Any, node: ast.AST) -> str:
        """The expression of something that is called."""
        if isinstance(called, torch.nn.Module):
            path = self._module_path(node.func if isinstance(node, ast.Call) else node)
            if path is None:
                raise self.wrong(
                    node, f"module of type {type(called).__name__} is not a part of this module", RuntimeError
                )
            return f"{path}.forward"
        if isinstance(called, types.MethodType) and called.__self__ is self._module:
            self.used.add(called.__name__)
            return f"{self._self}.{called.__name__}"
        if isinstance(called, types.MethodType) and isinstance(called.__self__, torch.nn.Module):
            path = (
                self._module_path(node.func.value)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                else None
            )
            if path is not None:
                return f"{path}.{called.__name__}"
        if isinstance(called, ScriptFunction):
            return self._writer.function(called._function)
        original = getattr(called, "__original_fn", None)
        if original is not None:
            called = original
        name, module = getattr(called, "__name__", ""), getattr(called, "__module__", "") or ""
        if called in (
            min,
            max,
            abs,
            len,
            range,
            print,
            int,
            float,
            bool,
            str,
            complex,
            list,
            tuple,
            dict,
            sorted,
            enumerate,
            zip,
            round,
            sum,
            any,
            all,
            ord,
            chr,
            hex,
            oct,
            bin,
            divmod,
            hash,
            reversed,
        ):
            return name
        if _MATH.get(name) is called:
            return f"torch.{'mathremainder' if name == 'remainder' else name}"
        if isinstance(called, type):
            return self._class(called)
        return self._function_text(called, name, module, node)

    def _of_functional(self, node: ast.AST, module: str) -> bool:
        """Whether a function is named as one of `torch.nn.functional`, which has other arguments than torch's."""
        place = node.func if isinstance(node, ast.Call) else node
        if isinstance(place, ast.Attribute):
            owner = self._resolved(place.value)
            return owner is torch.nn.functional or isinstance(owner, torch.nn.Module)
        return module == "torchlite.nn.functional" or not hasattr(torch, getattr(place, "id", ""))

    def _class(self, cls: type) -> str:
        if cls is device_type:
            return "torch.device"
        if cls is Tensor:
            return "torch.tensor"
        if cls.__module__.startswith("torchlite"):
            raise RuntimeError(f"python class {cls.__name__} cannot be used in TorchScript")
        return self._writer.cls(cls)

    def _function_text(self, called: Any, name: str, module: str, node: ast.AST) -> str:
        if name in FUNCTIONS and module.startswith("torchlite") and self._of_functional(node, module):
            return self._writer.library_function(name)
        packet = getattr(called, "_qualified_op_name", None)
        if packet is not None:
            space, _, last = packet.partition("::")
            return f"torch.{last}" if space == "aten" else f"ops.{space}.{last}"
        if module.startswith("torchlite") or getattr(called, "op", None) is not None or module in ("torch", "builtins"):
            if getattr(torch.ops.aten, name, None) is not None or name in (
                "as_tensor",
                "tensor",
                "manual_seed",
                "is_grad_enabled",
                "device",
            ):
                return f"torch.{name}"
            raise self.wrong(node, f"Unknown builtin op: aten::{name}", RuntimeError)
        if isinstance(called, types.FunctionType):
            return self._writer.function(called)
        raise self.wrong(node, f"Python builtin {called!r} is currently not supported in Torchscript", RuntimeError)


Writer.printer = Printer
