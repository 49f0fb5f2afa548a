"""Type checker of scripted functions: raises TorchScript's type errors before a program is written.

It infers types only where the text is conclusive: literals, annotated parameters, arithmetic, ops that always return
tensors. Unknown types are accepted, so it refuses less than PyTorch and never more.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import types
import typing
from typing import Any

import torchlite as torch

from .._dispatch.call import Tensor
from .._types.python_source import literal, parse
from ._function_modifiers import is_library_class, overloads_of
from ._script_modules import ScriptFunction
from ._source_resolution import FunctionDefinition, FunctionSource
from ._types import (
    AnyType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)  # fmt: skip

_TENSOR, _INT, _FLOAT, _BOOL, _STR, _NONE = TensorType(), IntType(), FloatType(), BoolType(), StringType(), NoneType()
_TYPES_BY_NAME: dict[str, Type] = {
    "Tensor": _TENSOR, "int": _INT, "float": _FLOAT, "bool": _BOOL, "str": _STR, "NoneType": _NONE, "None": _NONE,
    "complex": ComplexType(), "Any": AnyType(),
}  # fmt: skip
_HOLDERS: dict[str, Any] = {"List": ListType, "Optional": OptionalType, "Dict": DictType}
_TYPE_OF_PYTHON_CLASS = {
    int: _INT,
    float: _FLOAT,
    bool: _BOOL,
    str: _STR,
    complex: _TYPES_BY_NAME["complex"],
    type(None): _NONE,
}
_CONTAINERS: dict[type, type] = {list: ListType, tuple: TupleType, dict: DictType}
_NUMBERS = (IntType, FloatType, ComplexType, BoolType, TensorType)
_ATTRIBUTES = {"shape": ListType(_INT), "ndim": _INT, "requires_grad": _BOOL, "T": _TENSOR, "is_cuda": _BOOL}
_CASTS = {"int": _INT, "float": _FLOAT, "bool": _BOOL, "str": _STR, "len": _INT, "isinstance": _BOOL}
_NAMES: dict[Any, type] = {_INT: int, _FLOAT: float, _BOOL: bool}


def parse_annotation(node: Any) -> Type | None:
    """Return the type of an annotation, None if this module does not distinguish it."""
    node = parse(node, mode="eval").body if isinstance(node, str) else node
    if isinstance(node, ast.Name):
        return _TYPES_BY_NAME.get(node.id)
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    parts = [parse_annotation(p) for p in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]
    if any(part is None for part in parts):
        return None
    if node.value.id in ("Tuple", "Union"):
        return (TupleType if node.value.id == "Tuple" else UnionType)(parts)  # type: ignore[arg-type]
    return _HOLDERS[node.value.id](*parts) if node.value.id in _HOLDERS else None


def _is_certain_mismatch(value: Type | None, wanted: Type | None) -> bool:
    """True if a value is certainly not of a type."""
    if value is None or wanted is None or value.isSubtypeOf(wanted):
        return False
    if isinstance(value, (ListType, DictType, TupleType)) or isinstance(wanted, (UnionType, AnyType)):
        return False  # literals adapt to the wanted type
    return not isinstance(wanted, OptionalType) or not isinstance(value, OptionalType)


def _unify_types(a: Type | None, b: Type | None) -> Any:
    """Return the join of two types, None if unknown, False if there is none."""
    if a is None or b is None:
        return None
    if a.isSubtypeOf(b):
        return b
    if b.isSubtypeOf(a):
        return a
    if _NONE in (a, b):
        return OptionalType(b if a == _NONE else a)
    plain = (*_NUMBERS, StringType)
    return False if isinstance(a, plain) and isinstance(b, plain) else None


def _is_tensor_attribute(name: str) -> bool:
    """True if tensors have an attribute in programs; every op is a method."""
    return name != "numpy" and (hasattr(Tensor, name) or getattr(torch.ops.aten, name, None) is not None)


@functools.cache
def _returns_tensor(name: str) -> bool:
    """True if an op always returns one tensor."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or name in ("add", "sub", "mul", "div", "pow", "size", "tensor", "max", "min"):
        return False
    found = [getattr(packet, overload)._schema.returns for overload in packet.overloads()]
    return bool(found) and all(len(r) == 1 and str(r[0].type) == "Tensor" for r in found)


class _UnreadableVariable:
    """Variable whose read raises an error."""

    def __init__(self, said: str):
        self.message = said


class TypeChecker:
    """Checker that follows a function's control flow with the types of its variables."""

    def __init__(self, printer: Any):
        self._printer = printer
        self._given: Any = printer._kinds_of
        self._result = parse_annotation(self._given["return"]) if "return" in self._given else None
        self._returned: list[Type | None] = []

    def check(self, node: ast.FunctionDef) -> None:
        """Check a function. Raise RuntimeError for a type error."""
        arguments = [*node.args.args, *node.args.kwonlyargs]
        env: dict[str, Any] = {a.arg: parse_annotation(self._given.get(a.arg, "Tensor")) for a in arguments}
        if self._printer._self is not None:
            env[self._printer._self] = None
        self._parameters = frozenset(env)
        self._block(node.body, env, {})

    def _error_at(self, node: ast.AST, said: str) -> Exception:
        return self._printer.wrong(node, said, RuntimeError)

    # -- statements ------------------------------------------------------------------------------

    def _block(self, body: list, env: dict[str, Any], outer: dict[str, Any]) -> bool:
        """Check statements; return True if the end is unreachable."""
        for node in body:
            handler = _STATEMENTS.get(type(node))
            if handler is not None:
                if handler(self, node, env, outer):
                    return True
            else:
                self._check_children(node, env)
        return False

    def _check_exit_statement(self, node: Any, env: dict[str, Any], outer: dict[str, Any]) -> bool:
        self._check_children(node, env)
        return True

    def _return(self, node: ast.Return, env: dict[str, Any], outer: dict[str, Any]) -> bool:
        kind = _NONE if node.value is None else self._type(node.value, env)
        if self._result is not None:
            number = kind == _TENSOR and isinstance(self._result, (IntType, FloatType, ComplexType, BoolType))
            if _is_certain_mismatch(kind, self._result) and not number:
                message = f"Return value was annotated as having type {self._result} but is actually of type {kind}"
                raise self._error_at(node, message)
        elif "return" not in self._given:
            for before in self._returned:
                if _unify_types(before, kind) is False:
                    raise self._error_at(
                        node,
                        f"Previous return statement returned a value of type {before} but this return statement "
                        f"returns a value of type {kind}",
                    )
            self._returned.append(kind)
        return True

    def _assign(self, node: ast.Assign, env: dict[str, Any], outer: dict[str, Any]) -> None:
        kind = self._type(node.value, env)
        if self._has_type_comment(node):
            kind = None
        for target in node.targets:
            self._store(target, kind, env, outer)

    def _has_type_comment(self, node: ast.AST) -> bool:
        """True if the line has a type comment."""
        lines = self._printer._text.split("\n")[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
        return any("# type:" in line for line in lines)

    def _store(self, target: ast.AST, kind: Type | None, env: dict[str, Any], outer: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            before = outer.get(target.id)
            if isinstance(before, Type) and _is_certain_mismatch(kind, before):
                raise self._error_at(
                    target,
                    f"Variable '{target.id}' previously had type {before} but is now being assigned to a value of "
                    f"type {kind}",
                )
            env[target.id] = kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, kind, env, outer)
        elif isinstance(target, ast.Subscript):
            owner = self._type(target.value, env)
            self._type(target.slice, env)
            if isinstance(owner, TupleType):
                raise self._error_at(target, f"{owner} does not support subscripted assignment")
            item = getattr(owner, "_parts", (None,))[-1] if isinstance(owner, (ListType, DictType)) else None
            if _is_certain_mismatch(kind, item):
                raise self._error_at(target, f"Could not match type {kind} to the items of {owner}")
        elif isinstance(target, ast.Attribute):
            owner = self._type(target.value, env)
            if isinstance(owner, _NUMBERS) and not hasattr(Tensor, target.attr):
                raise self._error_at(target, f"Tried to set an attribute: {target.attr} on a non-class: {owner}")
            expected = self._module_attribute_type(target)
            if _is_certain_mismatch(kind, expected):
                message = f"Wrong type for attribute assignment. Expected {expected} but got {kind}"
                raise self._error_at(target, message)

    def _unpack(self, target: Any, kind: Type | None, env: dict[str, Any], outer: dict[str, Any]) -> None:
        parts: tuple = (None,) * len(target.elts)
        starred = any(isinstance(one, ast.Starred) for one in target.elts)
        if isinstance(kind, TupleType) and not starred:
            if len(kind._parts) != len(parts):
                few = len(kind._parts) < len(parts)
                said = f"need {len(parts)} values to unpack but found {'only ' * few}{len(kind._parts)}"
                raise self._error_at(target, said if few else f"too many values to unpack: {said}")
            parts = kind._parts
        for one, part in zip(target.elts, parts, strict=True):
            self._store(one.value if isinstance(one, ast.Starred) else one, part, env, outer)

    def _annotated(self, node: ast.AnnAssign, env: dict[str, Any], outer: dict[str, Any]) -> None:
        wanted = parse_annotation(self._printer._annotation_text(node.annotation))
        kind = None if node.value is None else self._type(node.value, env, True)
        if isinstance(node.target, ast.Name):
            if _is_certain_mismatch(kind, wanted) and not (kind == _TENSOR and isinstance(wanted, _NUMBERS)):
                raise self._error_at(
                    node,
                    f"Variable '{node.target.id}' is annotated with type {wanted} but is being assigned to a value of "
                    f"type {kind}",
                )
            env[node.target.id] = wanted

    def _augmented(self, node: ast.AugAssign, env: dict[str, Any], outer: dict[str, Any]) -> None:
        kind = self._type(ast.copy_location(ast.BinOp(node.target, node.op, node.value), node), env)
        if isinstance(node.target, ast.Name):
            self._store(node.target, kind, env, outer)

    def _assert(self, node: ast.Assert, env: dict[str, Any], outer: dict[str, Any]) -> None:
        self._type(node.test, env)
        self._refine(node.test, env, True)

    def _if(self, node: ast.If, env: dict[str, Any], outer: dict[str, Any]) -> bool:
        known = self._known_condition(node.test, env)
        if known is not None:
            self._printer.decided[id(node.test)] = known
            self._refine(node.test, env, known)
            return self._block(node.body if known else node.orelse, env, outer)
        if isinstance(self._type(node.test, env), (OptionalType, NoneType)):
            raise self._error_at(node.test, f"Could not cast value of type {self._type(node.test, env)} to bool")
        sides = []
        for body, way in ((node.body, True), (node.orelse, False)):
            inner = dict(env)
            self._refine(node.test, inner, way)
            sides.append((self._block(body, inner, _declared_types(outer, env)), inner))
        (left, a), (right, b) = sides
        if left or right:
            chosen = b if left else a
        else:
            chosen = {name: self._merge_branch_types(name, a, b) for name in {**a, **b}}
        env.clear()
        env.update(chosen)
        return left and right

    def _merge_branch_types(self, name: str, a: dict[str, Any], b: dict[str, Any]) -> Any:
        for here, side in ((a, "true"), (b, "false")):
            if name not in here:
                return _UnreadableVariable(f"{name} is not defined in the {side} branch")
        one, other = a[name], b[name]
        if isinstance(one, _UnreadableVariable) or isinstance(other, _UnreadableVariable):
            return one if isinstance(one, _UnreadableVariable) else other
        kind = _unify_types(one, other)
        if kind is not False:
            return kind
        return _UnreadableVariable(
            f"Type mismatch: {name} is set to type {one} in the true branch and type {other} in the false branch"
        )

    def _loop(self, node: Any, env: dict[str, Any], outer: dict[str, Any]) -> None:
        assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inner = dict(env)
        parts = self._printer._modules_of_loop(node.iter) if isinstance(node, ast.For) else None
        if isinstance(node, ast.For):
            kind = None if parts is not None else self._type(node.iter, env)
            if isinstance(kind, (IntType, FloatType, BoolType, OptionalType)):
                raise self._error_at(node, f"'{kind}' object is not iterable")
            item = kind._parts[0] if isinstance(kind, ListType) else None
            self._store(node.target, item, inner, {})
        else:
            self._type(node.test, inner)
            self._refine(node.test, inner, True)
        changed = {**outer, **env}
        self._block(node.body, inner, {} if parts is not None else changed)
        for name in assigned:
            if parts is not None:  # unrolled in the enclosing block
                env[name] = None
            elif name not in env:
                env[name] = _UnreadableVariable(f"undefined value {name}")

    def _with(self, node: ast.With, env: dict[str, Any], outer: dict[str, Any]) -> bool:
        for item in node.items:
            if item.optional_vars is not None:
                self._store(item.optional_vars, None, env, outer)
        return self._block(node.body, env, outer)

    # -- type refinement ----------------------------------------------------------------------------

    def _known_condition(self, test: ast.AST, env: dict[str, Any]) -> bool | None:
        """Return a condition's value if types decide it."""
        known = self._printer._known_condition(test)
        if known is not None:
            return known
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._known_condition(test.operand, env)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and _is_none_test(test):
            kind = self._type(test.left, env)
            if kind == _NONE or isinstance(kind, (*_NUMBERS, StringType, ListType, DictType, TupleType)):
                return (kind == _NONE) is isinstance(test.ops[0], ast.Is)
        if isinstance(test, ast.BoolOp):
            return self._known_combination(test, env)
        if isinstance(test, ast.Call):
            name, kinds = self._instance_test(test)
            kind = env.get(name)
            if kinds is not None and isinstance(kind, Type):
                found = {_is_instance(member, kinds) for member in _members_of(kind)}
                return found.pop() if len(found) == 1 else None
        return None

    def _known_combination(self, test: ast.BoolOp, env: dict[str, Any]) -> bool | None:
        """Return the value of `and` or `or` if types decide it."""
        inner, values = dict(env), []
        decisive = isinstance(test.op, ast.Or)
        for value in test.values:
            values.append(self._known_condition(value, inner))
            if values[-1] is decisive:
                return decisive
            self._refine(value, inner, not decisive)
        return None if None in values else not decisive

    def _instance_test(self, test: ast.Call) -> tuple[str, list[Any] | None]:
        """Return the variable and the kinds of `isinstance(variable, kinds)`: types, and classes of types for
        containers. None for other calls and kinds.
        """
        called = self._printer._resolve_expression(test.func)
        name = getattr(called, "__name__", "")
        of_jit = is_library_class(getattr(called, "__module__", "") or "", "jit") and name in (
            "isinstance",
            "_isinstance",
        )
        if not (called is isinstance or of_jit) or len(test.args) != 2 or not isinstance(test.args[0], ast.Name):
            return "", None
        found: list[Any] = []
        for part in test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]:
            value = self._printer._resolve_expression(part)
            if isinstance(value, type) and value in _CONTAINERS:
                found.append(_CONTAINERS[value])
            elif value is Tensor:
                found.append(_TENSOR)
            elif isinstance(value, type) and value in _TYPE_OF_PYTHON_CLASS:
                found.append(_TYPE_OF_PYTHON_CLASS[value])
            else:
                return "", None
        return test.args[0].id, found

    def _refine(self, test: ast.AST, env: dict[str, Any], way: bool) -> None:
        """Refine variable types for a condition being True or False."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._refine(test.operand, env, not way)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) is way:
                for value in test.values:
                    self._refine(value, env, way)
        elif isinstance(test, ast.Compare) and _is_none_test(test) and isinstance(test.left, ast.Name):
            kind = env.get(test.left.id)
            if isinstance(kind, OptionalType):
                env[test.left.id] = _NONE if isinstance(test.ops[0], ast.Is) is way else kind._parts[0]
        elif isinstance(test, ast.Call):
            tested, kinds = self._instance_test(test)
            if kinds is not None and isinstance(env.get(tested), OptionalType):
                parts = [one for one in _members_of(env[tested]) if _is_instance(one, kinds) is way]
                if len(parts) == 1:
                    env[tested] = parts[0]
                return
            for name in {n.id for n in ast.walk(test) if isinstance(n, ast.Name) and n.id in env}:
                if isinstance(env[name], (OptionalType, UnionType, AnyType)):
                    env[name] = None  # `isinstance` determines the type

    # -- expressions -----------------------------------------------------------------------------

    def _check_children(self, node: ast.AST, env: dict[str, Any]) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self._type(part, env)

    def _type(self, node: ast.AST, env: dict[str, Any], hinted: bool = False) -> Type | None:
        """Return an expression's type, if known. hinted: an annotation determines literal types."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            kind = handler(self, node, env)
            return None if hinted and isinstance(kind, (ListType, DictType, TupleType)) else kind
        self._check_children(node, env)
        return None

    def _constant(self, node: ast.Constant, env: dict[str, Any]) -> Type | None:
        return _TYPE_OF_PYTHON_CLASS.get(type(node.value))

    def _name(self, node: ast.Name, env: dict[str, Any]) -> Type | None:
        kind = env.get(node.id)
        if isinstance(kind, _UnreadableVariable):
            raise self._error_at(node, kind.message)
        return kind

    def _tuple(self, node: ast.Tuple, env: dict[str, Any]) -> Type | None:
        parts = [self._type(part, env) for part in node.elts]
        return None if any(part is None for part in parts) else TupleType(parts)  # type: ignore[arg-type]

    def _list(self, node: ast.List, env: dict[str, Any]) -> Type | None:
        parts = [self._type(part, env) for part in node.elts]
        if not parts:
            return ListType(_TENSOR)
        return None if parts[0] is None or any(part != parts[0] for part in parts) else ListType(parts[0])

    def _dict(self, node: ast.Dict, env: dict[str, Any]) -> Type | None:
        keys, values = [[self._type(p, env) for p in side if p is not None] for side in (node.keys, node.values)]
        if not keys:
            return DictType(_STR, _TENSOR)
        known = keys[0] is not None and values[0] is not None and {*keys} == {keys[0]} and {*values} == {values[0]}
        return DictType(keys[0], values[0]) if known else None  # type: ignore[arg-type]

    def _comprehension(self, node: Any, env: dict[str, Any]) -> Type | None:
        inner = dict(env)
        for loop in node.generators:
            kind = self._type(loop.iter, env)
            self._store(loop.target, kind._parts[0] if isinstance(kind, ListType) else None, inner, {})
        kinds = [self._type(getattr(node, field), inner) for field in ("elt", "key", "value") if hasattr(node, field)]
        return ListType(kinds[0]) if isinstance(node, ast.ListComp) and kinds[0] is not None else None

    def _attribute(self, node: ast.Attribute, env: dict[str, Any]) -> Type | None:
        owner = self._type(node.value, env)
        self._check_attribute(node, owner)
        if owner == _TENSOR:
            return _ATTRIBUTES.get(node.attr)
        return self._module_attribute_type(node) if owner is None else None

    def _check_attribute(self, node: ast.Attribute, owner: Type | None) -> None:
        """Raise RuntimeError if a value lacks an attribute."""
        kind = _NAMES.get(owner) if owner is not None else None
        absent = (
            isinstance(owner, OptionalType)
            or (owner == _TENSOR and not _is_tensor_attribute(node.attr))
            or (kind is not None and not hasattr(kind, node.attr))
        )
        if absent:
            raise self._error_at(node, f"'{owner}' object has no attribute or method '{node.attr}'.")

    def _module_attribute_type(self, node: ast.Attribute) -> Type | None:
        """Return the type of a module attribute; an Optional one is not refined."""
        module = self._printer._module
        if module is None or not isinstance(node.value, ast.Name) or node.value.id != self._printer._self:
            return None
        if node.attr not in module.__dict__:
            return None
        hint = getattr(type(module), "__annotations__", {}).get(node.attr)
        if hint is None:
            return _TYPE_OF_PYTHON_CLASS.get(type(module.__dict__[node.attr]))
        try:
            return parse_annotation(self._printer._writer.type(hint)) if not isinstance(hint, str) else None
        except (RuntimeError, NotImplementedError):
            return None

    def _binary(self, node: ast.BinOp, env: dict[str, Any]) -> Type | None:
        left, right = self._type(node.left, env), self._type(node.right, env)
        if left is None or right is None or isinstance(left, AnyType) or isinstance(right, AnyType):
            return None
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            if _TENSOR in (left, right):
                return _TENSOR
            if isinstance(node.op, ast.Div):
                return _FLOAT if {left, right} <= {_INT, _FLOAT} else None
            whole = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
            return (_INT if left == right == _INT else _FLOAT) if whole and {left, right} <= {_INT, _FLOAT} else None
        plain = (*_NUMBERS, StringType, OptionalType, NoneType)
        if left == _STR and (isinstance(node.op, ast.Mod) or right == _STR):
            return _STR if isinstance(node.op, (ast.Mod, ast.Add)) else None
        if isinstance(left, plain) and isinstance(right, plain):
            raise self._arguments(node, left, right)
        return None

    def _arguments(self, node: ast.AST, *kinds: Any) -> Exception:
        return self._error_at(
            node, f"Arguments for call are not valid: there is no such operation for {' and '.join(map(str, kinds))}"
        )

    def _both(self, node: ast.BoolOp, env: dict[str, Any]) -> Type | None:
        inner = dict(env)
        for value in node.values:
            known = self._known_condition(value, inner)
            if known is isinstance(node.op, ast.Or):
                return _BOOL  # the rest is not compiled
            self._type(value, inner)
            self._refine(value, inner, isinstance(node.op, ast.And))
        return _BOOL

    def _not(self, node: ast.UnaryOp, env: dict[str, Any]) -> Type | None:
        kind = self._type(node.operand, env)
        if isinstance(node.op, ast.Not):
            return _BOOL
        return kind if isinstance(kind, (IntType, FloatType, TensorType)) else None

    def _choice(self, node: ast.IfExp, env: dict[str, Any]) -> Type | None:
        known = self._known_condition(node.test, env)
        if known is not None:
            inner = dict(env)
            self._refine(node.test, inner, known)
            return self._type(node.body if known else node.orelse, inner)
        self._type(node.test, env)
        kinds = []
        for part, way in ((node.body, True), (node.orelse, False)):
            inner = dict(env)
            self._refine(node.test, inner, way)
            kinds.append(self._type(part, inner))
        return _unify_types(*kinds) or None

    def _compare(self, node: ast.Compare, env: dict[str, Any]) -> Type | None:
        kinds = [self._type(part, env) for part in (node.left, *node.comparators)]
        ordered = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        if ordered and None not in kinds and any(isinstance(kind, (OptionalType, NoneType)) for kind in kinds):
            raise self._arguments(node, *kinds)
        if all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return _BOOL
        if len(kinds) == 2 and None not in kinds:
            return _TENSOR if _TENSOR in kinds else _BOOL
        return None

    def _subscript(self, node: ast.Subscript, env: dict[str, Any]) -> Type | None:
        owner, index = self._type(node.value, env), self._type(node.slice, env)
        if isinstance(owner, OptionalType):
            raise self._error_at(node, f"'{owner}' object is not subscriptable")
        container = self._printer._resolve_expression(node.value) if isinstance(node.value, ast.Attribute) else None
        if isinstance(container, (torch.nn.ModuleList, torch.nn.Sequential)) and isinstance(node.slice, ast.Name):
            if node.slice.id in self._parameters:
                raise self._error_at(
                    node, "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential "
                    "indexing is only supported with integer literals",
                )  # fmt: skip
        if isinstance(owner, TupleType):
            return self._item_of_tuple(node, owner)
        if isinstance(owner, DictType):
            if _is_certain_mismatch(index, owner._parts[0]):
                raise self._arguments(node, owner, index)
            return owner._parts[1]
        if isinstance(owner, ListType) and index == _INT:
            return owner._parts[0]
        return _TENSOR if owner == _TENSOR else None

    def _item_of_tuple(self, node: ast.Subscript, owner: TupleType) -> Type | None:
        try:
            place = literal(node.slice)
        except (ValueError, TypeError):
            if isinstance(node.slice, ast.Name) and len(set(owner._parts)) > 1 and node.slice.id in self._parameters:
                raise self._error_at(
                    node,
                    f"Cannot index into a {owner} with a non-integer literal because we cannot resolve the output type",
                ) from None
            return None
        if type(place) is int and not -len(owner._parts) <= place < len(owner._parts):
            said = f"Tuple index out of range. Tuple is length {len(owner._parts)} and index is {place}"
            raise self._error_at(node, said)
        return owner._parts[place] if type(place) is int else None

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.Call, env: dict[str, Any]) -> Type | None:
        called = self._printer._resolve_expression(node.func)
        name, module = getattr(called, "__name__", ""), getattr(called, "__module__", "") or ""
        if is_library_class(module) and name in ("annotate", "_isinstance", "isinstance", "fork"):
            return None
        given = [self._type(a, env) for a in node.args]
        named = {k.arg: self._type(k.value, env) for k in node.keywords}
        if isinstance(node.func, ast.Name) and isinstance(env.get(node.func.id), (*_NUMBERS, StringType)):
            raise self._error_at(node, f"cannot call a value of type '{env[node.func.id]}'")
        if isinstance(node.func, ast.Subscript):
            self._type(node.func, env)
        if isinstance(node.func, ast.Attribute):
            owner = self._type(node.func.value, env)
            if owner is not None:
                return self._method(node, owner, given)
        if getattr(builtins, name, None) is called and name:
            return self._builtin(node, name, given)
        plain = getattr(called, "_python", None) if isinstance(called, ScriptFunction) else called
        is_plain = isinstance(plain, (types.FunctionType, FunctionDefinition))
        if is_plain and not is_library_class(getattr(plain, "__module__", "") or ""):
            if not any(isinstance(a, ast.Starred) for a in node.args) and None not in named:
                return self._function(node, plain, given, named)
            return None
        return _TENSOR if is_library_class(module) and name and _returns_tensor(name) else None

    def _builtin(self, node: ast.Call, name: str, given: list) -> Type | None:
        if name == "print" and node.keywords:
            raise self._error_at(node, "print doesn't accept any keyword arguments")
        if name == "range":
            for place, kind in enumerate(given):
                if isinstance(kind, (StringType, FloatType, OptionalType)):
                    raise self._error_at(node, f"all inputs of range must be ints, found {kind} in argument {place}")
            return ListType(_INT)
        return _CASTS.get(name)

    def _method(self, node: Any, owner: Type, given: list) -> Type | None:
        self._check_attribute(node.func, owner)
        name = node.func.attr
        if (
            isinstance(owner, ListType)
            and name == "append"
            and len(given) == 1
            and _is_certain_mismatch(given[0], owner._parts[0])
        ):
            raise self._error_at(
                node,
                f"Could not match type {given[0]} to t in argument 'el': Type variable 't' previously matched to type "
                f"{owner._parts[0]} is matched to type {given[0]}",
            )
        if owner == _TENSOR:
            if name in ("dim", "numel"):
                return _INT
            if name == "size":
                return _INT if given else ListType(_INT)
            return _TENSOR if _returns_tensor(name) else None
        return None

    def _function(self, node: ast.Call, called: Any, given: list, named: dict) -> Type | None:
        """Check a call of a user's function; return its declared result type."""
        if getattr(called, "_torchscript_modifier", None) is not None or hasattr(called, "__original_fn"):
            return None
        try:
            source = FunctionSource(called, self._printer._writer.written_classes)
            hints = source.hints()
        except (RuntimeError, OSError):
            return None
        arguments = source.node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or "# type:" in source.text:
            return None
        names = [a.arg for a in arguments.args]
        signature = f"{called.__name__}({', '.join(names)})"
        declared = self._matching_overload(called, dict(zip(names, given, strict=False)) | named)
        if declared is not None:
            self._printer.overloads[id(node)] = declared
            hints = hints | typing.get_type_hints(declared)
        if len(given) > len(names):
            raise self._error_at(
                node,
                f"{signature}:\nExpected at most {len(names)} arguments but found {len(given)} positional arguments.",
            )
        taken = dict(zip(names, given, strict=False)) | named
        blank = len(names) - len(source.defaults())
        for name in names[:blank]:
            if name not in taken:
                raise self._error_at(node, f"{signature}:\nArgument {name} not provided.")
        for name, kind in taken.items():
            if name not in names:
                raise self._error_at(node, f"{signature}:\nUnknown keyword argument '{name}'.")
            expected = self._type_of_annotation(hints.get(name, Tensor))
            number = kind == _TENSOR and isinstance(expected, (IntType, FloatType, ComplexType, BoolType))
            if _is_certain_mismatch(kind, expected) and not number:
                raise self._error_at(
                    node,
                    f"{signature}:\nExpected a value of type '{expected}' for argument '{name}' but instead found type "
                    f"'{kind}'.",
                )
        return self._type_of_annotation(hints["return"]) if "return" in hints else None

    def _matching_overload(self, called: Any, taken: dict) -> Any:
        """Return the first declared overload that takes arguments of these types; None if types are unknown."""
        for one in overloads_of(called):
            hints, parameters = typing.get_type_hints(one), inspect.signature(one).parameters
            if taken.keys() - parameters.keys():
                continue
            if any(p.default is inspect.Parameter.empty and name not in taken for name, p in parameters.items()):
                continue
            expected = {name: self._type_of_annotation(hints.get(name, Tensor)) for name in taken}
            if any(kind is not None and not _fits(kind, expected[name]) for name, kind in taken.items()):
                continue
            return None if any(kind is None for kind in taken.values()) else one
        return None

    def _type_of_annotation(self, hint: Any) -> Type | None:
        """Return the type of an annotation, given as a Python type or text."""
        try:
            text = (
                self._printer._annotation_text(hint) if isinstance(hint, ast.AST) else self._printer._writer.type(hint)
            )
        except (RuntimeError, NotImplementedError):
            return None
        return parse_annotation(text)


def _fits(kind: Type, expected: Type | None) -> bool:
    """True if an argument of a type may be one of an overload."""
    return expected is None or kind.isSubtypeOf(expected)


def _declared_types(outer: dict[str, Any], env: dict[str, Any]) -> dict[str, Any]:
    """Return the types that a nested block may assign: those of the enclosing blocks where a condition refined them."""
    found = {**outer, **env}
    for name, kind in outer.items():
        now = env.get(name)
        if isinstance(kind, Type) and isinstance(now, Type) and now.isSubtypeOf(kind):
            found[name] = kind
    return found


def _members_of(kind: Type) -> list[Any]:
    """Return the types of which a value of a type has one; None stands for unknown ones."""
    if isinstance(kind, OptionalType):
        return [*_members_of(kind._parts[0]), _NONE]
    if isinstance(kind, UnionType):
        return [member for part in kind._parts for member in _members_of(part)]
    return [None if isinstance(kind, AnyType) else kind]


def _is_instance(kind: Type | None, kinds: list[Any]) -> bool | None:
    """True if values of a type are instances of one of the kinds; None if that is unknown."""
    if kind is None:
        return None
    return any(kind == one if isinstance(one, Type) else isinstance(kind, one) for one in kinds)


def _is_none_test(test: ast.Compare) -> bool:
    """True for `value is None` or `value is not None`."""
    right = test.comparators[0]
    return isinstance(test.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None


_STATEMENTS: dict[type, Any] = {
    ast.Assign: TypeChecker._assign,
    ast.AnnAssign: TypeChecker._annotated,
    ast.AugAssign: TypeChecker._augmented,
    ast.Return: TypeChecker._return,
    ast.Raise: TypeChecker._check_exit_statement,
    ast.Break: TypeChecker._check_exit_statement,
    ast.Continue: TypeChecker._check_exit_statement,
    ast.If: TypeChecker._if,
    ast.For: TypeChecker._loop,
    ast.While: TypeChecker._loop,
    ast.With: TypeChecker._with,
    ast.Assert: TypeChecker._assert,
    ast.Delete: lambda self, node, env, outer: None,
}
_EXPRESSIONS: dict[type, Any] = {
    ast.Constant: TypeChecker._constant,
    ast.Name: TypeChecker._name,
    ast.Tuple: TypeChecker._tuple,
    ast.List: TypeChecker._list,
    ast.Dict: TypeChecker._dict,
    ast.ListComp: TypeChecker._comprehension,
    ast.DictComp: TypeChecker._comprehension,
    ast.Attribute: TypeChecker._attribute,
    ast.BinOp: TypeChecker._binary,
    ast.BoolOp: TypeChecker._both,
    ast.UnaryOp: TypeChecker._not,
    ast.IfExp: TypeChecker._choice,
    ast.Compare: TypeChecker._compare,
    ast.Subscript: TypeChecker._subscript,
    ast.Call: TypeChecker._call,
    ast.Lambda: lambda self, node, env: None,
    ast.GeneratorExp: lambda self, node, env: None,
}
