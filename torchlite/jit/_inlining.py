"""Inlines methods of submodules into the methods of a module."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from .._types.python_source import parse
from ._python_translator import ANNOTATED, dotted_name
from ._script_modules import RecursiveScriptModule

_RESULT = ".result"  # not a valid identifier, so unique
_MAX_INLINED_STATEMENTS = 40  # maximum number of statements duplicated to obtain a single return
_SCOPE_NODES = (ast.For, ast.While, ast.With, ast.FunctionDef, ast.ListComp, ast.DictComp, ast.Lambda)


class CannotInline(Exception):
    """A method of the submodule at `path` cannot be inlined."""

    def __init__(self, why: str, path: tuple[str, ...] = ()):
        super().__init__(why)
        self.path = path


def load_name(text: str) -> ast.Name:
    """Return a variable read."""
    return ast.Name(text, ast.Load())


def store_name(text: str, value: ast.expr, kind: ast.expr | None = None) -> ast.stmt:
    """Return an assignment."""
    target = ast.Name(text, ast.Store())
    return ast.Assign([target], value) if kind is None else ast.AnnAssign(target, kind, value, 1)


def path_of(node: ast.AST, self_name: str = "self") -> tuple[str, ...] | None:
    """Return the attribute names from `self` of `self.a.b` or `getattr(self.a, "0")`, None for other expressions."""
    found: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "getattr" and len(node.args) == 2:
            found.append(str(getattr(node.args[1], "value", "")))
            node = node.args[0]
        else:
            return None
    return tuple(reversed(found)) if node.id == self_name else None


def path_expression(path: tuple[str, ...]) -> ast.expr:
    """Return the expression of a path from `self`."""
    out: ast.expr = load_name("self")
    for part in path:
        if part.isidentifier():
            out = ast.Attribute(out, part, ast.Load())
        else:
            out = ast.Call(load_name("getattr"), [out, ast.Constant(part)], [])
    return out


def resolve_path(root: Any, path: tuple[str, ...]) -> Any:
    """Return the object at a path. Raise AttributeError if there is none."""
    for part in path:
        root = getattr(root, part)
    return root


def walk_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, nested ones included."""
    for node in body:
        yield from (part for part in ast.walk(node) if isinstance(part, ast.stmt))


def _has_return(nodes: list[ast.stmt]) -> bool:
    return any(isinstance(part, ast.Return) for part in walk_statements(nodes))


def _returns_in_loop(node: ast.FunctionDef) -> bool:
    """True if a return lies inside a loop, so that the function cannot be inlined."""
    try:
        to_single_return(node, "result")
    except CannotInline:
        return True
    return False


def _always_exits(body: list[ast.stmt]) -> bool:
    """True if a block never falls through."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _always_exits(last.body) and _always_exits(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


def to_single_return(node: ast.FunctionDef, result: str) -> list[ast.stmt]:
    """Return a function body that stores its result in a variable. Raise CannotInline for returns in loops."""
    kind = None if node.returns is None else ast.unparse(node.returns)
    plain = kind is None or kind in ("Tensor", "int", "float", "bool", "str", "NoneType", "None")

    def assign_result(value: ast.expr | None) -> ast.stmt:
        value = ast.Constant(None) if value is None else value
        if not plain:
            value = ast.Call(load_name("annotate"), [copy.deepcopy(node.returns), value], [])  # type: ignore[list-item]
        return store_name(result, value)

    def convert_block(body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for place, part in enumerate(body):
            rest = body[place + 1 :]
            if isinstance(part, ast.Return):
                return [*out, assign_result(part.value)]
            if not _has_return([part]):
                out.append(part)
                continue
            if not isinstance(part, ast.If):
                raise CannotInline("a loop returns")
            first, second = part.body, part.orelse
            if (
                not _always_exits(first)
                and not _always_exits(second)
                and len(list(walk_statements(rest))) > _MAX_INLINED_STATEMENTS
            ):
                raise CannotInline("too many statements follow a return")
            first = first if _always_exits(first) else [*first, *copy.deepcopy(rest)]
            second = second if _always_exits(second) else [*second, *rest]
            return [*out, ast.If(part.test, convert_block(first) or [ast.Pass()], convert_block(second))]
        if not _always_exits(out):
            out.append(assign_result(None))
        return out

    return convert_block(copy.deepcopy(node.body))


class Inliner:
    """Inliner of one module method. `kept`: paths of submodules that stay."""

    def __init__(self, root: Any, program: Any, classes: Any, kept: set[tuple[str, ...]]):
        self._root, self._program, self._classes, self._kept_paths = root, program, classes, kept
        self._taken: set[str] = {"self"}
        self._out: list[ast.stmt] = []
        self._deep = 0

    def method(self, method: str) -> ast.FunctionDef:
        """Return the method's definition where `self` is the root only."""
        node = copy.deepcopy(self._parse_definition(self._root, method))
        own = node.args.args[0].arg
        arguments = copy.deepcopy(node.args)
        arguments.args[0].arg = "self"
        given = {a.arg: a.arg for a in (*arguments.args[1:], *arguments.kwonlyargs)}
        self._taken |= set(given)
        result = self._new_name("result")
        body = to_single_return(node, _RESULT)
        out = self._inline_block(body, _InlinedScope(own, (), {_RESULT: result, **given}))
        return ast.FunctionDef(method, arguments, [*out, ast.Return(load_name(result))], [], node.returns, None)

    def _parse_definition(self, module: Any, method: str) -> ast.FunctionDef:
        owner = self._program.definition(self._classes(module))
        for part in owner.body:
            if isinstance(part, ast.FunctionDef) and part.name == method:
                return part
        raise CannotInline(f"there is no method {method}")

    def _new_name(self, wish: str) -> str:
        wish = wish if wish.isidentifier() and not wish.startswith("__") else "value"
        made, count = wish, 0
        while made in self._taken:
            made, count = f"{wish}_{count}", count + 1
        self._taken.add(made)
        return made

    # -- statements -----------------------------------------------------------------------

    def _inline_block(self, body: list[ast.stmt], scope: _InlinedScope) -> list[ast.stmt]:
        before, self._out = self._out, []
        for node in body:
            self._inline_statement(node, scope)
        made, self._out = self._out, before
        return made

    def _inline_statement(self, node: ast.stmt, scope: _InlinedScope) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if self._record_submodule_alias(node.targets[0].id, node.value, scope):
                return
        if isinstance(node, (ast.Pass, ast.Break, ast.Continue)):
            self._out.append(node)
            return
        if isinstance(node, ast.If):
            test = self._inline_expression(node.test, scope)
            body = self._inline_block(node.body, scope) or [ast.Pass()]
            self._out.append(ast.If(test, body, self._inline_block(node.orelse, scope)))
            return
        if isinstance(node, (ast.For, ast.While, ast.With)):
            self._inline_nested_blocks(node, scope)
            return
        if isinstance(node, ast.FunctionDef):
            raise CannotInline("an inner function", scope.part)
        copied = copy.copy(node)
        for field, value in reversed(list(ast.iter_fields(node))):  # evaluate values before targets
            if isinstance(value, ast.expr):
                kept = field == "annotation" or isinstance(node, ast.Assert)
                setattr(
                    copied, field, value if field == "annotation" else self._inline_expression(value, scope, not kept)
                )
            elif isinstance(value, list) and field == "targets":
                setattr(copied, field, [self._inline_expression(item, scope) for item in value])
        self._out.append(copied)

    def _inline_nested_blocks(self, node: Any, scope: _InlinedScope) -> None:
        copied = copy.copy(node)
        if isinstance(node, ast.For):
            copied.iter = self._inline_expression(node.iter, scope)
            copied.target = self._inline_expression(node.target, scope, False)
        elif isinstance(node, ast.While):
            copied.test = self._inline_expression(node.test, scope, False)
        else:
            items = []
            for item in node.items:
                value = self._inline_expression(item.context_expr, scope)
                bound = (
                    None if item.optional_vars is None else self._inline_expression(item.optional_vars, scope, False)
                )
                items.append(ast.withitem(value, bound))
            copied.items = items
        copied.body = self._inline_block(node.body, scope) or [ast.Pass()]
        self._out.append(copied)

    def _record_submodule_alias(self, target: str, value: ast.expr, scope: _InlinedScope) -> bool:
        """True if an assignment only aliases a submodule or function."""
        path = self._submodule_path(value, scope)
        if path is None:
            path = dotted_name(value) if self._resolve_function(value, scope) is not None else None  # type: ignore[assignment]
        if path is None:
            return False
        if target in scope.aliases and scope.aliases[target] != path:
            raise CannotInline("a variable names two parts", scope.part)
        scope.aliases[target] = path
        return True

    # -- expressions ----------------------------------------------------------------------

    def _submodule_path(self, node: ast.AST, scope: _InlinedScope) -> tuple[str, ...] | None:
        """Return the path of a submodule expression, None for other values."""
        path = scope.path(node)
        if path is None:
            return None
        try:
            found = resolve_path(self._root, path)
        except AttributeError:
            return None
        return path if isinstance(found, RecursiveScriptModule) else None

    def _resolve_function(self, node: ast.AST, scope: _InlinedScope) -> ast.FunctionDef | None:
        path = dotted_name(node)
        if path is not None and isinstance(scope.aliases.get(path), str):
            path = scope.aliases[path]
        if path is None or not path.startswith("__torch__."):
            return None
        found = self._program.definition(path)
        return found if isinstance(found, ast.FunctionDef) else None

    def _calls_parts(self, node: ast.AST, scope: _InlinedScope, functions: bool = True) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                callee = self._resolve_callee(part, scope)
                if callee is not None and (functions or callee[0] is not None):
                    return True
            elif isinstance(part, ast.Attribute) and self._resolve_getter(part, scope) is not None:
                return True
        return False

    def _resolve_getter(self, node: ast.Attribute, scope: _InlinedScope) -> Any:
        owner = self._submodule_path(node.value, scope)
        if owner is None or self._is_kept_call(owner):
            return None
        getter = resolve_path(self._root, owner)._script.properties.get(node.attr, (None,))[0]
        return None if getter is None else (owner, self._parse_definition(resolve_path(self._root, owner), getter))

    def _is_kept_call(self, path: tuple[str, ...]) -> bool:
        return any(path[: len(part)] == part for part in self._kept_paths)

    def _resolve_callee(
        self, node: ast.Call, scope: _InlinedScope
    ) -> tuple[tuple[str, ...] | None, ast.FunctionDef] | None:
        """Return the method or function that a call runs, None for one that stays."""
        function = self._resolve_function(node.func, scope)
        if function is not None:
            return None if _returns_in_loop(function) else (None, function)
        if not isinstance(node.func, ast.Attribute):
            return None
        owner = self._submodule_path(node.func.value, scope)
        if owner is None or self._is_kept_call(owner):
            return None
        return owner, self._parse_definition(resolve_path(self._root, owner), node.func.attr)

    def _inline_expression(self, node: ast.expr, scope: _InlinedScope, may_move: bool = True) -> Any:
        """Return an expression with inlined calls moved to statements before it."""
        if not self._calls_parts(node, scope):
            return self._rename_variables(node, scope)
        if not may_move or isinstance(node, _SCOPE_NODES):
            if self._calls_parts(node, scope, False):
                raise CannotInline("a submodule is called where no statement can precede", scope.part)
            return self._rename_variables(node, scope)
        if isinstance(node, ast.IfExp):
            return self._convert_conditional(node.test, node.body, node.orelse, scope)
        if isinstance(node, ast.BoolOp):
            return self._convert_bool_op(node, scope)
        if isinstance(node, ast.Call):
            callee = self._resolve_callee(node, scope)
            if callee is not None:
                return self._inline_call(node, callee, scope)
        if isinstance(node, ast.Attribute):
            getter = self._resolve_getter(node, scope)
            if getter is not None:
                return self._inline_call(ast.Call(node, [], []), getter, scope)
        return self._evaluate_in_order(node, scope)

    def _evaluate_in_order(self, node: Any, scope: _InlinedScope) -> Any:
        """Evaluate subexpressions in order."""
        copied = copy.copy(node)
        fields = [(copied, f) for f, v in ast.iter_fields(node) if isinstance(v, (ast.expr, ast.Slice))]
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], (ast.expr, ast.keyword)):
                setattr(copied, field, [copy.copy(item) for item in value])
        todo: list[tuple[Any, str, ast.expr]] = []
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and dotted_name(node.func) is None:
                copied.func = copy.copy(node.func)
                todo.append((copied.func, "value", node.func.value))
            else:
                copied.func = self._rename_variables(node.func, scope)
        else:
            todo += [(owner, f, getattr(node, f)) for owner, f in fields]
        for field in ("elts", "keys", "values", "args", "comparators"):
            items = getattr(node, field, None)
            if isinstance(items, list):
                todo += [(getattr(copied, field), str(i), item) for i, item in enumerate(items)]
        todo += [(copied.keywords[i], "value", k.value) for i, k in enumerate(getattr(node, "keywords", ()))]
        last = max(i for i, (_, _, v) in enumerate(todo) if self._calls_parts(v, scope))
        typed = isinstance(node, ast.Call) and dotted_name(node.func) in (*ANNOTATED, "isinstance")
        for place, (owner, field, value) in enumerate(todo):
            is_type = typed and value is node.args[dotted_name(node.func) == "isinstance"]
            done = value if is_type else self._inline_expression(value, scope)
            if place < last and not is_type and not isinstance(done, (ast.Constant, ast.Slice)):
                kept = self._new_name("_0")
                self._out.append(store_name(kept, done))
                done = load_name(kept)
            if isinstance(owner, list):
                owner[int(field)] = done
            else:
                setattr(owner, field, done)
        return copied

    def _convert_conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, scope: _InlinedScope) -> ast.expr:
        result = self._new_name("_0")
        key = f".{result}"  # not a name in the function
        scope.names[key] = result
        test = self._inline_expression(test, scope)
        blocks = [self._inline_block([store_name(key, value)], scope) for value in (body, orelse)]
        self._out.append(ast.If(test, *blocks))
        return load_name(result)

    def _convert_bool_op(self, node: ast.BoolOp, scope: _InlinedScope) -> ast.expr:
        first, rest = node.values[0], node.values[1:]
        if not rest:
            return self._inline_expression(first, scope)
        after = ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
        if isinstance(node.op, ast.And):
            return self._convert_conditional(first, after, ast.Constant(False), scope)
        return self._convert_conditional(first, ast.Constant(True), after, scope)

    def _rename_variables(self, node: Any, scope: _InlinedScope) -> Any:
        """Return an expression with renamed variables."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.aliases.pop(node.id, None)  # an ordinary value from here on
        path = scope.path(node)
        if path:
            return (
                path_expression(path)
                if not isinstance(getattr(node, "ctx", None), ast.Store)
                else self._attribute_target(path)
            )
        if isinstance(node, ast.Name):
            if path is not None:
                raise CannotInline("a part is a value", path)
            found = scope.aliases.get(node.id)
            if isinstance(found, str):
                return parse(found, mode="eval").body
            if isinstance(node.ctx, ast.Store) and node.id not in scope.names:
                scope.names[node.id] = self._new_name(node.id)
            return ast.Name(scope.names.get(node.id, node.id), node.ctx)
        if isinstance(node, ast.Lambda):
            raise CannotInline("a function within a function", scope.part)
        copied = copy.copy(node)
        if isinstance(node, (ast.ListComp, ast.DictComp)):
            for loop in node.generators:
                self._rename_variables(loop.target, scope)
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Call) and field == "func" and isinstance(value, ast.Name):
                if value.id not in scope.names and not isinstance(scope.aliases.get(value.id), str):
                    continue
            if isinstance(node, ast.Call) and field == "args" and dotted_name(node.func) in ANNOTATED:
                copied.args = [node.args[0], *(self._rename_variables(item, scope) for item in value[1:])]
            elif isinstance(value, ast.AST) and not isinstance(value, (ast.expr_context, ast.operator, ast.cmpop)):
                setattr(copied, field, self._rename_variables(value, scope))
            elif isinstance(value, list):
                setattr(
                    copied, field, [self._rename_variables(v, scope) if isinstance(v, ast.AST) else v for v in value]
                )
        return copied

    def _attribute_target(self, path: tuple[str, ...]) -> ast.expr:
        return ast.Attribute(path_expression(path[:-1]), path[-1], ast.Store())

    # -- calls ----------------------------------------------------------------------------

    def _inline_call(self, call: ast.Call, callee: tuple, scope: _InlinedScope) -> ast.expr:
        """Inline a function before the current statement; return its result variable."""
        owner, node = callee
        result = self._new_name("_0")
        try:
            body = to_single_return(node, _RESULT)
        except CannotInline as error:
            raise CannotInline(str(error), owner) from None
        if self._deep > 60:
            raise CannotInline("a function calls itself")
        parameters = [*node.args.args, *node.args.kwonlyargs]
        own = None
        if owner is not None:
            own, parameters = parameters[0].arg, parameters[1:]
        inner = _InlinedScope(own, owner or (), {_RESULT: result})
        given = dict(zip((p.arg for p in parameters), call.args, strict=False))
        given.update({k.arg: k.value for k in call.keywords if k.arg is not None})
        for p in parameters:
            if p.arg in given:
                self._bind_parameter(p, self._bind_argument_value(given[p.arg], scope), inner)
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        for p, value in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
            if p.arg not in given and value is not None:
                self._bind_parameter(p, value, inner)
        self._deep += 1
        statements = self._inline_block(body, inner)
        self._deep -= 1
        self._out += statements
        return load_name(result)

    def _bind_argument_value(self, node: ast.expr, scope: _InlinedScope) -> Any:
        path = self._submodule_path(node, scope)
        return path if path is not None else self._inline_expression(node, scope)

    def _bind_parameter(self, parameter: ast.arg, value: Any, inner: _InlinedScope) -> None:
        if isinstance(value, tuple):
            inner.aliases[parameter.arg] = value
            return
        inner.names[parameter.arg] = self._new_name(parameter.arg)
        kind = parameter.annotation
        plain = kind is None or ast.unparse(kind) in ("Tensor", "int", "float", "bool", "str")
        self._out.append(store_name(inner.names[parameter.arg], value, None if plain else copy.deepcopy(kind)))


class _InlinedScope:
    """Names of one inlined function."""

    def __init__(self, own: str | None, part: tuple[str, ...], names: dict[str, str]):
        self.names, self.part = names, part
        self.aliases: dict[str, Any] = {} if own is None else {own: part}

    def path(self, node: ast.AST) -> tuple[str, ...] | None:
        """Return the root path of an expression, None for others."""
        inner = node
        while not isinstance(inner, ast.Name):
            if isinstance(inner, ast.Attribute):
                inner = inner.value
            elif isinstance(inner, ast.Call) and dotted_name(inner.func) == "getattr" and len(inner.args) == 2:
                inner = inner.args[0]
            else:
                return None
        found = self.aliases.get(inner.id)
        if not isinstance(found, tuple):
            return None
        rest = path_of(node, inner.id)
        return None if rest is None else (*found, *rest)
