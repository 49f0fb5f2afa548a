"""Compiles Python functions to TorchScript text: resolves names to what they denote and checks the syntax.

Types are not inferred: the translator knows operators, slices and tensor methods. Unsupported code raises PyTorch's
errors.
"""

from __future__ import annotations

import ast
import builtins
import copy
import enum
import math
import textwrap
import types
from typing import Any

import torchlite as torch

from .._dispatch.call import Tensor
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import layout, memory_format
from .._types.python_source import literal, parse
from .._types.qschemes import qscheme
from ._call_compiler import DEFERRED, CallCompiler
from ._dtype_codes import to_code
from ._function_modifiers import is_ignored_fn, is_library_class, should_drop
from ._python_translator import PLAIN
from ._save import type_of
from ._script_modules import ScriptFunction
from ._source_resolution import FunctionSource, UnresolvedType, type_value
from ._source_writer import NotSupportedError, SourceWriter, UnsupportedNodeError
from ._trace_to_script import path_of
from ._type_check import TypeChecker

_CLOSED_OVER_ERROR = (
    "python value of type '{}' cannot be used as a value. Perhaps it is a closed over global variable? If so, please "
    "consider passing it in as an argument or use a local variable instead."
)
_UNSUPPORTED: dict[type, str] = {
    ast.FunctionDef: "function definitions aren't",
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
    ast.Set: "set literals aren't",
    ast.NamedExpr: "named expressions aren't",
    ast.Match: "match statements aren't",
}

# Python types allowed for a default, by parameter type.
_DEFAULTS: dict[str | None, tuple[type, ...]] = {"int": (int,), "float": (float,), "bool": (bool,), "str": (str,)}

# Container modules, whose items are submodules.
_CONTAINER_MODULES = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict, torch.nn.ParameterList)


class ScriptCompiler(CallCompiler, ast.NodeTransformer):
    """Rewriter of one function. `module` is `self`, if it is a module."""

    def __init__(
        self, writer: SourceWriter, function: Any, module: Any, owner: str | None = None, overload: Any = None
    ):
        self._writer, self._function, self._module, self._owner = writer, function, module, owner
        self._source = FunctionSource(function, writer.written_classes, overload)
        self.overloads: dict[int, Any] = {}  # the declarations that calls of functions with overloads match
        self.decided: dict[int, bool] = {}  # the conditions that types decide
        self._node, self._text, self._globals = self._source.node, self._source.text, self._source.names
        self._self: str | None = None
        self._bound: dict[str, tuple[str, Any]] = {}  # loop variables over modules: expression and module
        self._objects: dict[str, type | None] = {}  # variables that hold an object of a user's class
        self.fields: dict[str, str] = {}
        self.used: set[str] = set()  # called methods of the module
        self._locals = {n.id for n in ast.walk(self._node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._locals |= {a.arg for a in self._node.args.args} | {a.arg for a in self._node.args.kwonlyargs}
        self._kinds_of: dict[str, str] = {}

    def definition(self, name: str) -> str:
        """Return the function's text under a name."""
        head = self.head(name)
        if is_ignored_fn(self._function):
            return self._write_ignored_method(name, head)
        TypeChecker(self).check(self._node)
        body = self._compile_block(self._node.body)
        text = "\n".join(ast.unparse(ast.fix_missing_locations(n)) for n in body) or "pass"
        return f"{head}:\n" + textwrap.indent(text, "  ") + "\n"

    def head(self, name: str) -> str:
        """Return the text of the function's signature."""
        node = self._node
        if node.args.vararg or node.args.kwarg or any(d is not None for d in node.args.kw_defaults):
            raise self.wrong(
                node,
                "Compiled functions can't take variable number of arguments or use keyword-only arguments with "
                "defaults",
            )
        args = [*node.args.args, *node.args.kwonlyargs]
        self._read_kinds(args)
        first = []
        if self._module is not None or self._owner is not None:
            self._self = args[0].arg
            first = [f"{self._self}" + (f": {self._owner}" if self._owner else "")]
            args = args[1:]
        given = self._source.defaults()
        blank = len(node.args.args) - len(given)
        texts = []
        for place, a in enumerate(args, len(first)):
            default = ""
            if blank <= place < len(node.args.args):
                default = f"={self._default_text(given[place - blank], a)}"
            texts.append(f"{a.arg}: {self._kinds_of.get(a.arg, 'Tensor')}{default}")
        result = f" -> {self._kinds_of['return']}" if "return" in self._kinds_of else ""
        return f"def {name}({', '.join([*first, *texts])}){result}"

    def _write_ignored_method(self, name: str, head: str) -> str:
        """Return the text of a function that only Python can run: it raises."""
        said = f"The method {name} is left to Python (@unused or @ignore), and cannot be called in TorchScript"
        if not should_drop(self._function):
            self._writer.ignored.append(name)
        result = self._kinds_of.get("return")
        out = "" if result == "NoneType" else f"\n  return uninitialized({result or 'Tensor'})"
        return f"{head}{'' if result else ' -> Tensor'}:\n  ops.prim.RaiseException({said!r}){out}\n"

    def _read_kinds(self, args: list[ast.arg]) -> None:
        """Return the parameter and result types as text, by name."""
        comment = self._type_comment()
        if comment is not None:
            method = len(args) > len(comment[0]) and (self._module is not None or self._owner is not None)
            names = [a.arg for a in args[1 if method else 0 :]]
            self._kinds_of = dict(zip(names, comment[0], strict=False))
            if comment[1] is not None:
                self._kinds_of["return"] = comment[1]
            return
        for name, kind in self._source.hints().items():
            self._kinds_of[name] = self._annotation_text(kind) if isinstance(kind, ast.AST) else self._writer.type(kind)

    def _type_comment(self) -> tuple[list[str], str | None] | None:
        """Return the types of a `# type: (Tensor, int) -> Tensor` comment below the signature."""
        lines = self._text.split("\n")
        for line in lines[self._node.lineno - 1 : self._node.body[-1].end_lineno]:
            words = line.strip()
            at = words.find("# type: (")
            if at >= 0:
                left, _, right = words[at:].removeprefix("# type:").partition("->")
                tree = parse(left.strip(), mode="eval").body
                parts = tree.elts if isinstance(tree, ast.Tuple) else [tree] if left.strip() != "()" else []
                result = self._type_text(parse(right.strip(), mode="eval").body) if right.strip() else None
                return [self._type_text(p) for p in parts if not _is_ellipsis(p)], result
        return None

    def _default_text(self, value: Any, parameter: ast.arg) -> str:
        if isinstance(value, ast.AST):
            try:
                value = literal(value)
            except ValueError:
                value = self._resolve_expression(value)
        if isinstance(value, (list, dict, set)) and self._source.function is not None:
            raise self.wrong(
                parameter,
                "Mutable default parameters are not supported because Python binds them to the function and they "
                f"persist across function calls.\n Found {type(value)} on parameter {parameter.arg}",
                RuntimeError,
            )
        if isinstance(value, (dtypes.dtype, layout, memory_format, qscheme)):
            value = to_code(value)  # its type is int, as the annotation's
        kind = self._kinds_of.get(parameter.arg)
        if kind == "float" and type(value) is int:
            value = float(value)
        if kind in _DEFAULTS and not isinstance(value, _DEFAULTS[kind]):
            raise self.wrong(
                parameter, f'Expected a default value of type {kind} on parameter "{parameter.arg}"', RuntimeError
            )
        return self._writer.constant(value) if isinstance(value, Tensor) else self._literal(value)

    def wrong(self, node: ast.AST, why: str, kind: type = NotSupportedError) -> Exception:
        """Return an error with the source line."""
        start, file, line = self._source.start, self._source.file, getattr(node, "lineno", 1)
        shown = self._text.split("\n")[line - 1 : line]
        return kind(f'{why}:\n  File "{file}", line {start + line - 1}\n' + "\n".join(shown) + "\n    ~~~ <--- HERE")

    # -- names --------------------------------------------------------------------------------

    def _resolve_expression(self, node: ast.AST) -> Any:
        """Return the object that an expression of global names denotes, `DEFERRED` if known only at run time."""
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return self._bound[node.id][1]
            if node.id == self._self and self._module is not None:
                return self._module
            if node.id in self._locals:
                return DEFERRED
            if node.id in self._globals:
                return self._globals[node.id]
            return getattr(builtins, node.id, DEFERRED)
        if isinstance(node, ast.Attribute):
            owner = self._resolve_expression(node.value)
            if owner is DEFERRED:
                return DEFERRED
            if isinstance(owner, torch.nn.Module):
                return getattr(owner, node.attr, DEFERRED)
            return (
                getattr(owner, node.attr, DEFERRED)
                if not isinstance(owner, (Tensor, int, float, str, list, dict))
                else DEFERRED
            )
        if isinstance(node, ast.Subscript):
            owner = self._resolve_expression(node.value)
            if isinstance(owner, _CONTAINER_MODULES) and isinstance(node.slice, ast.Constant):
                return owner[node.slice.value]  # type: ignore[index]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            return self._resolve_getattr(node)
        return DEFERRED

    def _resolve_getattr(self, node: ast.Call) -> Any:
        """Return the value of `getattr(module, "name"[, default])`."""
        owner = self._resolve_expression(node.args[0]) if len(node.args) in (2, 3) else DEFERRED
        if not isinstance(owner, torch.nn.Module) or not isinstance(node.args[1], ast.Constant):
            return DEFERRED
        found = getattr(owner, str(node.args[1].value), DEFERRED)
        if found is DEFERRED and len(node.args) == 3 and isinstance(node.args[2], ast.Constant):
            return node.args[2].value
        return found

    def _submodule_path(self, node: ast.AST) -> str | None:
        """Return the path of a submodule expression, None for others."""
        if isinstance(node, ast.Name):
            if node.id in self._bound:
                return self._bound[node.id][0]
            return node.id if node.id == self._self else None
        if isinstance(node, ast.Attribute):
            base = self._submodule_path(node.value)
            return None if base is None else path_of((node.attr,), base)
        if isinstance(node, ast.Call) and self._resolve_expression(node) is not DEFERRED:
            base = self._submodule_path(node.args[0])
            return None if base is None else path_of((node.args[1].value,), base)  # type: ignore[attr-defined]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner, base = self._resolve_expression(node.value), self._submodule_path(node.value)
            if base is not None and isinstance(owner, torch.nn.Module):
                key: Any = node.slice.value
                if isinstance(key, int):
                    children = owner._parameters if isinstance(owner, torch.nn.ParameterList) else owner._modules
                    key = list(children)[key]
                return path_of((str(key),), base)
        return None

    def _parse_expression(self, text: str) -> ast.expr:
        return parse(text, mode="eval").body

    def _literal(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return f"{self._writer.cls(type(value))}.{value.name}"
        if isinstance(value, (dtypes.dtype, layout, memory_format, qscheme)):
            return str(to_code(value))
        if isinstance(value, device_type):
            return f'torch.device("{value}")'
        if isinstance(value, float) and not math.isfinite(value):
            return "nan" if value != value else "inf" if value > 0 else "-inf"
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return repr(value)
        if value is Ellipsis:
            return "..."
        if isinstance(value, tuple):
            return f"({', '.join(map(self._literal, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._literal, value))}]"
        raise RuntimeError(_CLOSED_OVER_ERROR.format(type(value).__name__))

    def visit_Name(self, node: ast.Name) -> Any:
        """Rewrite a variable, captured constant or loop module."""
        if isinstance(node.ctx, ast.Store) or node.id == self._self:
            return node
        if node.id in self._bound:
            return self._parse_expression(self._bound[node.id][0])
        if node.id in self._locals or node.id in PLAIN:
            return node
        value = self._resolve_expression(node)
        if value is DEFERRED:
            raise self.wrong(node, f"undefined value {node.id}", RuntimeError)
        if isinstance(value, (bool, int, float, complex, str, list, tuple, dict, Tensor)) and not isinstance(
            value, enum.Enum
        ):  # they may change, unlike attributes of Python modules (`math.pi`)
            raise self.wrong(node, _CLOSED_OVER_ERROR.format(type(value).__name__), RuntimeError)
        return self._parse_expression(self._literal(value))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Rewrite an attribute of a value; resolve attributes of captured modules and classes."""
        self._check_typed(node)
        value = self._resolve_expression(node)
        instance_class = self._objects.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(getattr(instance_class, node.attr, None), property):
            return self._parse_expression(f"{node.value.id}.__{node.attr}_getter()")  # type: ignore[attr-defined]
        if value is DEFERRED:
            owner = self._resolve_expression(node.value)
            if isinstance(owner, torch.nn.Module) and not hasattr(owner, node.attr):
                if isinstance(node.ctx, ast.Load):
                    raise self.wrong(
                        node, f"Module '{type(owner).__name__}' has no attribute '{node.attr}' ", RuntimeError
                    )
            if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == self._self:
                self.fields.setdefault(node.attr, "Tensor")
            return ast.Attribute(self.visit(node.value), node.attr, node.ctx)
        path = self._submodule_path(node)
        owner = self._resolve_expression(node.value)
        if isinstance(owner, torch.nn.Module) and isinstance(getattr(type(owner), node.attr, None), property):
            if owner is self._module:
                self.used.add(node.attr)
            return self._parse_expression(f"{self._submodule_path(node.value)}.__{node.attr}_getter()")
        if isinstance(owner, torch.nn.Module) and is_library_class(type(owner).__module__, "nn.modules"):
            if isinstance(node.ctx, ast.Load) and node.attr != "training" and _is_constant_value(value):
                return self._parse_expression(self._literal(value))  # library layers have no attributes in programs
        is_value = not callable(value) or isinstance(value, torch.nn.Module) or hasattr(type(value), "_schema_type")
        if path is not None and is_value:
            found = self._parse_expression(path)
            if isinstance(found, ast.Attribute):
                found.ctx = node.ctx
            return found
        if path is not None and isinstance(value, types.MethodType):
            return self._parse_expression(path)
        return self._parse_expression(self._literal(value))

    def _check_typed(self, node: ast.Attribute) -> None:
        """Raise RuntimeError for an untyped or new attribute of the module."""
        if self._module is None or not isinstance(node.value, ast.Name) or node.value.id != self._self:
            return
        kind = self._writer.untyped.get((id(self._module), node.attr))
        if isinstance(node.ctx, ast.Store):
            if kind is not None or not hasattr(self._module, node.attr):
                raise self.wrong(
                    node,
                    f"Tried to set nonexistent attribute: {node.attr}. Did you forget to initialize it in __init__()?",
                    RuntimeError,
                )
        elif kind is not None:
            raise self.wrong(
                node,
                f"Module '{type(self._module).__name__}' has no attribute '{node.attr}' (This attribute exists on the "
                f"Python module, but we failed to convert Python type: '{kind}' to a TorchScript type. "
                f"{kind.capitalize()} trace inputs must have elements. Its type was inferred; try adding a type "
                "annotation for the attribute.)",
                RuntimeError,
            )

    # -- statements -----------------------------------------------------------------------------

    def _compile_block(self, body: list) -> list:
        out: list[Any] = []
        for number, node in enumerate(body):
            if not number and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # docstring
            self._check_supported(node)
            made = self.visit(node)
            if made is None:
                continue
            out += made if isinstance(made, list) else [made]
            if _leaves(out):
                break  # what follows is not compiled, and may name what programs cannot use
        return out or [ast.Pass()]

    def _check_supported(self, node: ast.AST) -> None:
        said = _UNSUPPORTED.get(type(node))
        if said is not None:
            raise self.wrong(node, f"{said} supported", UnsupportedNodeError)

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node. Raise UnsupportedNodeError for unsupported syntax."""
        self._check_supported(node)
        return super().visit(node)

    def _known_condition(self, node: ast.AST) -> bool | None:
        """Return a condition's compile-time value, None if unknown."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._known_condition(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.Call):
            called = self._resolve_expression(node.func)
            name = getattr(called, "__name__", "")
            if name == "is_scripting" and called is not DEFERRED:
                return True
            if name == "is_tracing" and called is not DEFERRED:
                return False
            if called is hasattr and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
                owner = self._resolve_expression(node.args[0])
                return None if owner is DEFERRED else hasattr(owner, str(node.args[1].value))
            if called is isinstance and len(node.args) == 2:
                value, kinds = self._resolve_expression(node.args[0]), self._resolve_expression(node.args[1])
                if isinstance(value, torch.nn.Module) and kinds is not DEFERRED:
                    return isinstance(value, kinds)
        if isinstance(node, ast.BoolOp):
            values = [self._known_condition(v) for v in node.values]
            if isinstance(node.op, ast.And) and False in values:
                return False
            if isinstance(node.op, ast.Or) and True in values:
                return True
            return values[0] if None not in values else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            value = self._resolve_expression(node.left)
            if (
                value is not DEFERRED
                and isinstance(node.comparators[0], ast.Constant)
                and (value is None or isinstance(value, (torch.nn.Module, Tensor)))
                and not self._may_change(node.left)
            ):
                return (value is None) is isinstance(node.ops[0], ast.Is)
        value = self._resolve_expression(node) if isinstance(node, (ast.Name, ast.Attribute)) else DEFERRED
        if self._is_constant(node) and isinstance(value, bool):
            return value
        return None

    def _may_change(self, node: ast.AST) -> bool:
        """True if an expression is an attribute declared Optional."""
        owner = self._resolve_expression(node.value) if isinstance(node, ast.Attribute) else None
        if not isinstance(owner, torch.nn.Module) or node.attr not in owner.__dict__:  # type: ignore[attr-defined]
            return False
        return node.attr in getattr(type(owner), "__annotations__", {})  # type: ignore[attr-defined]

    def _is_constant(self, node: ast.AST) -> bool:
        """True if an expression is an immutable setting."""
        owner = self._resolve_expression(node.value) if isinstance(node, ast.Attribute) else DEFERRED
        if isinstance(owner, types.ModuleType):
            return True
        if isinstance(node, ast.Attribute) and isinstance(owner, torch.nn.Module):
            cls = type(owner)
            finals = [n for n, t in getattr(cls, "__annotations__", {}).items() if "Final" in str(t)]
            return node.attr in (*getattr(cls, "__constants__", ()), *finals)
        return isinstance(node, ast.Name) and node.id not in self._locals

    def visit_If(self, node: ast.If) -> Any:
        """Rewrite a condition; keep only the taken branch of a compile-time condition."""
        known = self._known_condition(node.test)
        if known is None and self._source.overload is not None:  # branches for the arguments of other overloads
            known = self.decided.get(id(node.test))
        if known is not None:
            chosen = node.body if known else node.orelse
            return [n for n in self._compile_block(chosen) if not isinstance(n, ast.Pass)] or ast.Pass()
        test = self.visit(node.test)
        return ast.If(test, self._compile_block(node.body), self._compile_block(node.orelse) if node.orelse else [])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Rewrite a conditional expression."""
        known = self._known_condition(node.test)
        if known is not None:
            return self.visit(node.body if known else node.orelse)
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        """Rewrite a loop; unroll loops over modules."""
        if node.orelse:
            raise self.wrong(node, "else branches of for loops aren't supported", UnsupportedNodeError)
        found = self._modules_of_loop(node.iter)
        if found is None:
            return ast.For(self.visit(node.target), self.visit(node.iter), self._compile_block(node.body), [])
        out: list[Any] = []
        for values in found:
            targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            for target, value in zip(targets, values if isinstance(node.target, ast.Tuple) else [values], strict=True):
                if isinstance(value, tuple):
                    self._bound[target.id] = value  # type: ignore[attr-defined]
                else:
                    self._bound.pop(target.id, None)  # type: ignore[attr-defined]
                    out.append(ast.Assign([ast.Name(target.id, ast.Store())], ast.Constant(value), lineno=0))  # type: ignore[attr-defined]
            out += self._compile_block(copy.deepcopy(node.body))
        return out

    def _modules_of_loop(self, node: ast.AST) -> Any:
        """Return (expression, module) pairs of a loop over modules, with indices or names if requested."""
        if isinstance(node, ast.Call):
            called = self._resolve_expression(node.func)
            if called is enumerate:
                inner = self._modules_of_loop(node.args[0])
                return None if inner is None else [(i, one) for i, one in enumerate(inner)]
            if called is zip:
                inners = [self._modules_of_loop(a) for a in node.args]
                return None if any(i is None for i in inners) else list(zip(*inners, strict=False))
            if called is reversed:
                inner = self._modules_of_loop(node.args[0])
                return None if inner is None else inner[::-1]
            if isinstance(node.func, ast.Attribute) and node.func.attr in (
                "items",
                "values",
                "keys",
                "children",
                "named_children",
            ):
                owner = self._resolve_expression(node.func.value)
                path = self._submodule_path(node.func.value)
                if isinstance(owner, torch.nn.Module) and path is not None:
                    pairs = [(name, (path_of((name,), path), m)) for name, m in owner._modules.items()]
                    kind = node.func.attr
                    if kind in ("items", "named_children"):
                        return pairs
                    return [name for name, _ in pairs] if kind == "keys" else [one for _, one in pairs]
            return None
        owner, path = self._resolve_expression(node), self._submodule_path(node)
        if isinstance(owner, (torch.nn.ModuleList, torch.nn.Sequential)) and path is not None:
            return [(path_of((name,), path), m) for name, m in owner._modules.items()]
        if isinstance(owner, torch.nn.ModuleDict) and path is not None:
            return list(owner._modules)
        if isinstance(owner, torch.nn.ParameterList) and path is not None:
            return [(path_of((str(i),), path), parameter) for i, parameter in enumerate(owner)]
        return None

    def visit_While(self, node: ast.While) -> Any:
        """Rewrite a while loop."""
        if node.orelse:
            raise self.wrong(node, "else branches of while loops aren't supported", UnsupportedNodeError)
        return ast.While(self.visit(node.test), self._compile_block(node.body), [])

    def visit_With(self, node: ast.With) -> Any:
        """Rewrite a context manager; `torch.no_grad()` becomes its program class."""
        items = []
        for item in node.items:
            called = (
                self._resolve_expression(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else None
            )
            if called is torch.no_grad:
                items.append(ast.withitem(self._parse_expression(f"{self._writer.no_grad()}()"), item.optional_vars))
            else:
                items.append(ast.withitem(self.visit(item.context_expr), item.optional_vars))
        return ast.With(items, self._compile_block(node.body))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Rewrite an annotated assignment."""
        kind = self._annotation_text(node.annotation)
        if isinstance(node.target, ast.Attribute):
            self.fields[node.target.attr] = kind
        if node.value is None:
            return None
        made = ast.Call(ast.Name("annotate", ast.Load()), [self._parse_expression(kind), self.visit(node.value)], [])
        return ast.Assign([self.visit(node.target)], made, lineno=0)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Rewrite an assignment; infer the types of new object attributes from their values."""
        target, *more = node.targets
        if more:
            keep = target.id if isinstance(target, ast.Name) else f"value_{id(node)}"
            self._locals.add(keep)
            first = self.visit_Assign(ast.copy_location(ast.Assign([ast.Name(keep, ast.Store())], node.value), node))
            rest = more if isinstance(target, ast.Name) else node.targets
            again = [ast.Assign([self.visit(each)], self._parse_expression(keep), lineno=0) for each in rest]
            return [*(first if isinstance(first, list) else [first]), *again]
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == self._self
            and self._owner
        ):
            self.fields.setdefault(target.attr, self._infer_annotation(node.value))
        if isinstance(target, ast.Name) and (
            self._is_bound(target.id, node.value) or self._is_alias(target.id, node.value)
        ):
            return ast.Pass()
        if isinstance(target, ast.Name):
            constructed = self._resolve_expression(node.value.func) if isinstance(node.value, ast.Call) else None
            self._objects[target.id] = constructed if isinstance(constructed, type) else None
        value = self.visit(node.value)
        return ast.Assign([self.visit(target)], value, lineno=0)

    def _is_bound(self, name: str, node: ast.AST) -> bool:
        """True if a variable aliases a module or None, and has a single value."""
        value = (
            self._resolve_expression(node) if isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)) else DEFERRED
        )
        is_absent = value is None and isinstance(node, ast.Call)
        if not (isinstance(value, torch.nn.Module) or is_absent):
            return False
        if self._count_stores(name) != 1:
            return False
        path = "None" if is_absent else self._submodule_path(node)
        if path is None:
            return False
        self._bound[name] = path, value
        return True

    def _is_alias(self, name: str, node: ast.AST) -> bool:
        """True if a variable is another name of a class, function or Python module, and has a single value."""
        value = self._resolve_expression(node) if isinstance(node, (ast.Name, ast.Attribute)) else DEFERRED
        if not isinstance(
            value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, ScriptFunction)
        ):
            return False
        if isinstance(value, type) and issubclass(value, enum.Enum) or self._count_stores(name) != 1:
            return False
        self._globals = {**self._globals, name: value}
        self._locals.discard(name)
        return True

    def _count_stores(self, name: str) -> int:
        return sum(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(self._node)
        )

    def _infer_annotation(self, node: ast.AST) -> str:
        if isinstance(node, ast.Constant):
            return type_of(node.value)
        if isinstance(node, ast.Name):
            return self._kinds_of.get(node.id, "Tensor")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("int", "float", "bool", "str")
        ):
            return node.func.id
        return "Tensor"

    def _annotation_text(self, node: Any) -> str:
        """Return the text of an annotated type."""
        try:
            return self._writer.type(type_value(node, self._globals))
        except UnresolvedType as error:
            raise self.wrong(node, str(error), RuntimeError) from None

    _type_text = _annotation_text

    def visit_Raise(self, node: ast.Raise) -> Any:
        """Rewrite a `raise` to type and message."""
        made = node.exc
        name, said = "Exception", None
        if isinstance(made, ast.Call):
            name = ast.unparse(made.func)
            said = self.visit(_TypesAsText().visit(made.args[0])) if made.args else None
        elif made is not None:
            name = ast.unparse(made)
        kind = f"builtins.{name.rpartition('.')[2]}"
        call = ast.Call(
            self._parse_expression("ops.prim.RaiseException"), [said or ast.Constant(""), ast.Constant(kind)], []
        )
        return [ast.Expr(call), ast.Assert(ast.Constant(False), ast.Constant(name))]

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Drop `del`."""
        targets = [t for t in node.targets if not isinstance(t, ast.Name)]
        return ast.Delete([self.visit(t) for t in targets]) if targets else ast.Pass()

    # -- expressions ------------------------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Rewrite an f-string to `format`."""
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

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """A list comprehension, as in PyTorch."""
        return self.visit_ListComp(ast.copy_location(ast.ListComp(node.elt, node.generators), node))

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """Rewrite a list comprehension; unroll over modules."""
        if len(node.generators) != 1:
            raise self.wrong(node, "Only a single generator is currently supported")
        loop = node.generators[0]
        if loop.ifs:
            raise self.wrong(node, "Comprehension ifs are not supported yet")
        found = self._modules_of_loop(loop.iter)
        if found is None or not isinstance(loop.target, ast.Name):
            return self._compile_comprehension(node)
        items = []
        for value in found:
            self._bound[loop.target.id] = value
            items.append(self.visit(copy.deepcopy(node.elt)))
        self._bound.pop(loop.target.id, None)
        return ast.List(items, ast.Load())

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        """Rewrite a dictionary comprehension."""
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise self.wrong(node, "Comprehension ifs are not supported yet")
        return self._compile_comprehension(node)

    def _compile_comprehension(self, node: Any) -> Any:
        loop = node.generators[0]
        if not isinstance(loop.target, ast.Tuple):
            return self.generic_visit(node)
        loop.iter = self.visit(loop.iter)
        names = [n.id for n in loop.target.elts]  # type: ignore[attr-defined]
        item = "item_of_" + "_".join(names)
        self._locals.add(item)
        before = dict(self._bound)
        self._bound |= {n: (f"{item}[{i}]", DEFERRED) for i, n in enumerate(names)}
        loop.target = ast.Name(item, ast.Store())
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self._bound = before
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Rewrite chained comparisons to pairs."""
        if len(node.ops) == 1:
            return self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return ast.BoolOp(ast.And(), [self.generic_visit(p) for p in pairs])

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Rewrite an item access; resolve items of module containers."""
        value = self._resolve_expression(node)
        path = self._submodule_path(node) if isinstance(value, (torch.nn.Module, Tensor)) else None
        return self._parse_expression(path) if path is not None else self.generic_visit(node)


class _TypesAsText(ast.NodeTransformer):
    """Replaces `type(x)` by its text: TorchScript has no types as values, and an error's message may name one."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call of `type`."""
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1:
            return ast.copy_location(ast.Constant(ast.unparse(node)), node)
        return self.generic_visit(node)


def _is_constant_value(value: Any) -> bool:
    """True if a value is a number, string, None, or a tuple of them."""
    if isinstance(value, tuple):
        return all(map(_is_constant_value, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _is_ellipsis(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


SourceWriter.printer = ScriptCompiler


def _leaves(body: list) -> bool:
    """True if statements that follow a compiled block cannot run."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    if isinstance(last, ast.Assert):
        return isinstance(last.test, ast.Constant) and last.test.value is False
    return isinstance(last, ast.Return)  # PyTorch compiles what follows `break` and `continue`
