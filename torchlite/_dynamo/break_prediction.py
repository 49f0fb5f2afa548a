"""Foresees the graph breaks of a call from the source of the function, so that its first call runs in parts already.

It follows which variables hold tensors: from the arguments on, through assignments and calls. What it does not foresee
is found when the call is recorded.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from torchlite._dispatch.call import Tensor
from torchlite.nn.modules.module import Module

from .function_ast import position_of


class _Unknown:
    """A value of which nothing is known."""


class _TensorValue:
    """A tensor that does not exist yet."""


UNKNOWN, TENSOR = _Unknown(), _TensorValue()
_READS = frozenset("item tolist numpy backward __array__".split())
# Attributes and methods of tensors that are no tensors.
_NO_TENSORS = frozenset(
    "shape dtype device ndim requires_grad grad_fn is_leaf layout names size dim numel nelement stride element_size "
    "is_contiguous is_floating_point is_complex is_cuda get_device data_ptr storage_offset type register_hook "
    "requires_grad_ __len__ register_post_accumulate_grad_hook ndimension".split()
)
_NO_TENSOR_FUNCTIONS = frozenset(
    "is_tensor is_grad_enabled no_grad enable_grad set_grad_enabled inference_mode autocast manual_seed device dtype "
    "is_floating_point is_complex numel Generator get_default_dtype Size finfo iinfo is_autocast_enabled".split()
)
# Ops whose results have shapes that depend on elements.
_SHAPES_OF_ELEMENTS = frozenset("nonzero argwhere masked_select unique unique_consecutive bincount".split())
_CONVERSIONS = (float, int, bool, complex)
_MAX_DEPTH = 8


class BreakPrediction:
    """Marks the foreseen breaks of a call in a tree of parts. `found` has how many there are."""

    def __init__(self, tree: Any) -> None:
        self.tree, self.found = tree, 0

    def visit_call(self, function: Any, args: tuple, kwargs: dict, depth: int = 0) -> tuple[bool, Any]:
        """Mark the breaks of a call. Return whether there are any, and the result as far as it is known."""
        plain, args = _plain_function(function, args)
        split = None if plain is None or depth > _MAX_DEPTH else self.tree.split_of_function(plain)
        if plain is None or split is None:
            return False, UNKNOWN
        before = self.found
        result = _FunctionWalk(self, split, plain, depth).run(args, kwargs)
        return self.found > before, result


def _plain_function(function: Any, args: tuple) -> tuple[types.FunctionType | None, tuple]:
    """Return the Python function that a call runs, and all its arguments."""
    if isinstance(function, Module):
        forward = getattr(type(function), "forward", None)
        return (forward, (function, *args)) if forward.__class__ is types.FunctionType else (None, args)  # type: ignore[return-value]
    if function.__class__ is types.MethodType:
        function, args = function.__func__, (function.__self__, *args)
    return (function if function.__class__ is types.FunctionType else None), args


class _FunctionWalk:
    """Walks the statements of a function in order."""

    def __init__(self, prediction: BreakPrediction, split: Any, function: types.FunctionType, depth: int) -> None:
        self.prediction, self.split, self.function, self.depth = prediction, split, function, depth
        self.values: dict[str, Any] = {}
        self.result: Any = UNKNOWN
        code = function.__code__
        self.local = {*code.co_varnames, *code.co_cellvars}
        self.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Return the result of the call, as far as it is known."""
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        defaults = self.function.__defaults__ or ()
        self.values.update(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        self.values.update(zip(names, args, strict=False))
        self.values.update(self.function.__kwdefaults__ or {})
        self.values.update({name: value for name, value in kwargs.items() if name in self.local})
        if code.co_flags & 0x4:
            self.values[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]] = args[len(names) :]
        self.block(self.split.node.body)
        return self.result

    def mark(self, node: Any, why: str, is_test: bool = False) -> None:
        """Mark a break."""
        plan = self.split.plan
        marked = plan.tests if is_test else plan.breaks
        if position_of(node) not in marked:
            place = f"{self.function.__code__.co_filename}:{node.lineno}"
            self.prediction.tree.foresee(self.split, position_of(node), is_test, why, place)
        self.prediction.found += 1

    # -- statements -----------------------------------------------------------------------------

    def block(self, statements: list) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: Any) -> None:
        if isinstance(s, (ast.Assign, ast.AnnAssign)):
            value = UNKNOWN if s.value is None else self.value(s.value)
            for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                self.bind(target, value)
        elif isinstance(s, ast.AugAssign):
            is_tensor = _is_tensor(self.value(s.value)) or _is_tensor(self.value(s.target))
            self.bind(s.target, TENSOR if is_tensor else UNKNOWN)
        elif isinstance(s, (ast.If, ast.While)):
            self.test(s.test)
            self.block(s.body)
            self.block(s.orelse)
        elif isinstance(s, ast.For):
            self.bind(s.target, _element(self.value(s.iter)))
            self.block(s.body)
            self.block(s.orelse)
        elif isinstance(s, ast.With):
            for item in s.items:
                self.value(item.context_expr)
            self.block(s.body)
        elif isinstance(s, ast.Try):
            for part in (s.body, *(h.body for h in s.handlers), s.orelse, s.finalbody):
                self.block(part)
        elif isinstance(s, ast.Return):
            value = UNKNOWN if s.value is None else self.value(s.value)
            self.result = value if value is not UNKNOWN else self.result
        elif isinstance(s, ast.Assert):
            self.test(s.test)
        elif isinstance(s, ast.Expr):
            self.value(s.value)
        elif isinstance(s, (ast.FunctionDef, ast.ClassDef)):
            self.values[s.name] = UNKNOWN

    def bind(self, target: Any, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.values[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = value if isinstance(value, (tuple, list)) and len(value) == len(target.elts) else None
            for n, one in enumerate(target.elts):
                self.bind(one, _element(value) if known is None else known[n])

    # -- expressions ----------------------------------------------------------------------------

    def test(self, e: Any) -> None:
        """Evaluate a condition."""
        if isinstance(e, ast.BoolOp):
            for one in e.values:
                self.test(one)
        elif isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not):
            self.test(e.operand)
        elif _is_tensor(self.value(e)):
            self.mark(e, "a condition depends on elements", True)

    def value(self, e: Any) -> Any:
        """Return the value of an expression as far as it is known, and mark the breaks in it."""
        method = getattr(self, f"value_of_{e.__class__.__name__}", None)
        if method is not None:
            return method(e)
        for child in ast.iter_child_nodes(e):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def value_of_Constant(self, e: ast.Constant) -> Any:
        return e.value

    def value_of_Name(self, e: ast.Name) -> Any:
        if e.id in self.local:
            return self.values.get(e.id, UNKNOWN)
        if e.id in self.cells:
            return self.cells[e.id].cell_contents if self.cells[e.id] != types.CellType() else UNKNOWN
        space = self.function.__globals__
        builtins = space.get("__builtins__", {})
        found = builtins if isinstance(builtins, dict) else vars(builtins)
        return space.get(e.id, found.get(e.id, UNKNOWN))

    def value_of_Attribute(self, e: ast.Attribute) -> Any:
        owner = self.value(e.value)
        if _is_tensor(owner):
            return UNKNOWN if e.attr in _NO_TENSORS else TENSOR
        if owner is UNKNOWN:
            return UNKNOWN
        return _attribute(owner, e.attr)

    def value_of_BinOp(self, e: ast.BinOp) -> Any:
        values = [self.value(e.left), self.value(e.right)]
        return TENSOR if any(map(_is_tensor, values)) else UNKNOWN

    def value_of_UnaryOp(self, e: ast.UnaryOp) -> Any:
        if isinstance(e.op, ast.Not):
            if _is_tensor(self.value(e.operand)):
                self.mark(e, "a condition depends on elements", True)
            return UNKNOWN
        return TENSOR if _is_tensor(self.value(e.operand)) else UNKNOWN

    def value_of_Compare(self, e: ast.Compare) -> Any:
        values = [self.value(one) for one in (e.left, *e.comparators)]
        found = any(map(_is_tensor, values))
        by_identity = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in e.ops)
        return TENSOR if found and not by_identity else UNKNOWN

    def value_of_BoolOp(self, e: ast.BoolOp) -> Any:
        for one in e.values[:-1]:
            self.test(one)
        return self.value(e.values[-1])

    def value_of_IfExp(self, e: ast.IfExp) -> Any:
        self.test(e.test)
        values = [self.value(e.body), self.value(e.orelse)]
        return TENSOR if any(map(_is_tensor, values)) else UNKNOWN

    def value_of_Subscript(self, e: ast.Subscript) -> Any:
        owner, place = self.value(e.value), self.value(e.slice)
        if isinstance(owner, (tuple, list)) and place.__class__ is int and -len(owner) <= place < len(owner):
            return owner[place]
        return _element(owner)

    def value_of_Tuple(self, e: Any) -> Any:
        return tuple([self.value(one) for one in e.elts])

    value_of_List = value_of_Tuple

    def value_of_JoinedStr(self, e: ast.JoinedStr) -> Any:
        values = [self.value(one.value) for one in e.values if isinstance(one, ast.FormattedValue)]
        if any(map(_is_tensor, values)):
            self.mark(e, "elements are formatted")
        return UNKNOWN

    def value_of_Call(self, e: ast.Call) -> Any:
        args = [self.value(one) for one in e.args]
        kwargs = {word.arg: self.value(word.value) for word in e.keywords}
        owner = self.value(e.func.value) if isinstance(e.func, ast.Attribute) else None
        if _is_tensor(owner):
            name = e.func.attr  # type: ignore[attr-defined]
            if name in _READS:
                what = "a backward pass runs" if name == "backward" else f"elements are read by {name}()"
                self.mark(e, what)
                return UNKNOWN
            if name in _SHAPES_OF_ELEMENTS:
                self.mark(e, f"the shape of what {name} gives depends on elements")
            return UNKNOWN if name in _NO_TENSORS else TENSOR
        function = self.value(e.func)
        takes = any(map(_is_tensor, (*args, *kwargs.values())))
        if function is print or getattr(function, "__name__", "") == "graph_break":
            self.mark(e, f"it calls {function.__name__}")
            return UNKNOWN
        if function in _CONVERSIONS and takes:
            self.mark(e, "elements are read")
            return UNKNOWN
        if _is_of_library(function):
            name = getattr(function, "__name__", "")
            if name in _SHAPES_OF_ELEMENTS and takes:
                self.mark(e, f"the shape of what {name} gives depends on elements")
            return UNKNOWN if name in _NO_TENSOR_FUNCTIONS or isinstance(function, type) else TENSOR
        return self._visit_function(e, function, args, kwargs, takes)

    def _visit_function(self, e: ast.Call, function: Any, args: list, kwargs: dict, takes: bool) -> Any:
        if function is UNKNOWN or None in kwargs or any(isinstance(one, ast.Starred) for one in e.args):
            return UNKNOWN
        if "_torchdynamo_disable" in getattr(function, "__dict__", ()):
            self.mark(e, f"it calls {getattr(function, '__name__', '')}, which torch.compiler.disable keeps from it")
            return TENSOR if takes else UNKNOWN
        breaks, result = self.prediction.visit_call(function, tuple(args), kwargs, self.depth + 1)
        if breaks:
            self.split.plan.breaks.add(position_of(e))
            self.split.version += 1
        if result is UNKNOWN and takes and isinstance(function, Module):
            return TENSOR
        return result


def _is_tensor(value: Any) -> bool:
    return value is TENSOR or isinstance(value, Tensor)


def _element(value: Any) -> Any:
    """Return what an item of a value is."""
    if _is_tensor(value) or isinstance(value, (tuple, list)) and value and all(map(_is_tensor, value)):
        return TENSOR
    return UNKNOWN


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute without running the program's code."""
    if isinstance(owner, Module):
        for table in ("_parameters", "_buffers", "_modules"):
            if name in owner.__dict__.get(table, ()):
                return owner.__dict__[table][name]
    if isinstance(owner, types.ModuleType):
        return getattr(owner, name, UNKNOWN) if _is_of_library(owner) else vars(owner).get(name, UNKNOWN)
    if name in getattr(owner, "__dict__", ()):
        return owner.__dict__[name]
    for cls in type(owner).__mro__:
        if name in vars(cls):
            found = vars(cls)[name]
            return types.MethodType(found, owner) if found.__class__ is types.FunctionType else UNKNOWN
    return UNKNOWN


def _is_of_library(value: Any) -> bool:
    name = getattr(value, "__name__", "") if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return not isinstance(value, (Module, types.MethodType)) and str(name).partition(".")[0] in ("torchlite", "torch")
