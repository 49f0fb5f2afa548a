"""Parameters of public functions that their bodies never read, found by the syntax trees.

Run as `python -m tests.unused_parameters`: prints those whose docstring does not say that they have no effect.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torchlite as torch
from torchlite._dispatch.op_record import NAMESPACES

ROOT = Path(torch.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Unused(NamedTuple):
    name: str  # the public name of the function
    parameter: str
    where: str  # file:line
    documented: bool


def is_public(path: str) -> bool:
    return not any(part.startswith("_") for part in path.split("."))


def public_modules():
    """Every module that can be imported by names without an underscore, in order."""
    yield torch
    for found in pkgutil.walk_packages([str(ROOT)], "torchlite.", onerror=lambda _: None):
        if is_public(found.name):
            yield importlib.import_module(found.name)


@functools.cache
def _trees(file: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the line that their code objects give: that of the first decorator."""
    found = {}
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, FUNCTIONS):
            found[min([node.lineno, *(d.lineno for d in node.decorator_list)])] = node
    return found


def _definition(function: Any) -> ast.FunctionDef | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not code.co_filename.startswith(str(ROOT)):
        return None
    node = _trees(code.co_filename).get(code.co_firstlineno)
    return node if node is not None and node.name == code.co_name else None


def _is_declaration(node: ast.FunctionDef) -> bool:
    """True if the body only raises or is empty: an abstract method, or a function that refuses every call."""
    if isinstance(node.returns, ast.Name) and node.returns.id == "NoReturn":
        return True
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return not body or (len(body) == 1 and isinstance(body[0], (ast.Raise, ast.Pass)))


def _unread(node: ast.FunctionDef) -> list[str]:
    names = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if "locals" in names or _is_declaration(node):
        return []
    a = node.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return [p.arg for p in every if p.arg not in names and not p.arg.startswith("_")]


def _parameters(node: ast.FunctionDef) -> set[str]:
    a = node.args
    return {p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]}


def _subclasses(cls: type):
    for found in type.__subclasses__(cls):
        yield found
        yield from _subclasses(found)


def _function(value: Any) -> Any:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, functools.cached_property):
        value = value.func
    return value.fget if isinstance(value, property) else value


def _set_by_other_classes(cls: type, name: str, parameter: str) -> bool:
    """True if another class has a method of the name with the parameter, which this one overrides or which reads it."""
    for other in cls.__mro__[1:-1]:
        node = _definition(_function(vars(other).get(name)))
        if node is not None and parameter in _parameters(node):
            return True
    for other in _subclasses(cls):
        node = _definition(_function(vars(other).get(name)))
        if node is not None and parameter in _parameters(node) and parameter not in _unread(node):
            return True
    return False


def _is_documented(parameter: str, *texts: str | None) -> bool:
    """True if a docstring contains "`x` has no effect", alone or in a list ("`x` and `y` have no effect"), or an item
    "x: Has no effect" or "x, y: No effect" of its Args section.
    """
    sentence = r"((?:`\*{0,2}\w+`(?:, and |, | and )?)+) (?:has|have) no effect"
    item = r"(?<!\S)((?:\*{0,2}\w+, )*\*{0,2}\w+): (?:Has no|Have no|No) effect"
    for text in texts:
        plain = " ".join((text or "").split())
        for names in re.findall(sentence, plain) + re.findall(item, plain):
            if parameter in re.findall(r"\w+", names):
                return True
    return False


_CONSTRUCTORS = ("__new__", "__init__")


def _reads_in_constructor(cls: type, parameter: str) -> bool:
    """True if one of a class's two constructors, which get the same arguments, reads the parameter.

    `*args` and `**kwargs` of `__new__` correspond to the parameters of `__init__`.
    """
    new, init = (_definition(_function(inspect.getattr_static(cls, name))) for name in _CONSTRUCTORS)
    if new is not None and init is not None and parameter in {p.arg for p in (new.args.vararg, new.args.kwarg) if p}:
        return True
    nodes = [node for node in (new, init) if node is not None]
    return any(parameter in _parameters(n) and parameter not in _unread(n) for n in nodes)


def _methods(cls: type):
    """The public methods and constructors that the class or a base in torchlite defines, each with its owner."""
    for owner in cls.__mro__[:-1]:
        for name, value in list(vars(owner).items()):
            if name in ("__init__", "__new__") or not name.startswith("_"):
                yield owner, name, _function(value)


def _of_class(path: str, cls: type):
    for owner, name, function in _methods(cls):
        node = _definition(function)
        if node is None or Protocol in cls.__mro__:
            continue
        for parameter in _unread(node):
            if name in _CONSTRUCTORS and _reads_in_constructor(cls, parameter):
                continue
            if parameter in ("self", "cls") or _set_by_other_classes(owner, name, parameter):
                continue
            yield f"{path}.{name}", parameter, function, _is_documented(parameter, function.__doc__, owner.__doc__)


def _is_exported(name: str, value: Any, module: Any) -> bool:
    """True if the module lists the name, or does not list its names and the value comes from a public module."""
    if hasattr(module, "__all__"):
        return name in module.__all__
    return not name.startswith("_") and is_public(getattr(value, "__module__", None) or "")


def _exports(module: Any):
    """The exported names of a module with their values, those that it loads on first access too."""
    for name in dict.fromkeys((*vars(module), *getattr(module, "__all__", ()))):
        try:
            value = getattr(module, name)
        except ImportError:  # the name of an extra that is absent
            continue
        if _is_exported(name, value, module):
            yield name, value


def _of_module(path: str, module: Any):
    for name, value in _exports(module):
        if isinstance(value, type):
            yield from _of_class(f"{path}.{name}", value)
        elif callable(value):
            node = _definition(value)
            bound = getattr(value, "__self__", None) is not None
            for parameter in _unread(node)[bound and node.args.args[0].arg in _unread(node) :] if node else []:
                yield f"{path}.{name}", parameter, value, _is_documented(parameter, inspect.unwrap(value).__doc__)


def _of_ops():
    """The implementations of the ops that have public names; the first parameter is the namespace of the backend."""
    for space, records in NAMESPACES.items():
        for name, record in records.items():
            function = getattr(record.composite, "__wrapped__", record.composite)
            node = _definition(function) if function is not None and not name.startswith("_") else None
            saved = {need for formula in record.formulas for need in formula.needs}
            for parameter in _unread(node)[node.args.args[0].arg in _unread(node) :] if node is not None else []:
                if parameter in saved or parameter == record.sparse_grad_param:
                    continue
                yield f"{space}.{name}", parameter, function, _is_documented(parameter, record.doc)


def unused_parameters() -> list[Unused]:
    """Each function once, by the first public name that leads to it."""
    found: dict[tuple[Any, str], Unused] = {}
    modules = list(public_modules())
    for module in modules:
        for name, parameter, function, documented in _of_module(module.__name__, module):
            code = inspect.unwrap(function).__code__
            where = f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno}"
            found.setdefault((code, parameter), Unused(name, parameter, where, documented))
    for name, parameter, function, documented in _of_ops():
        code = inspect.unwrap(function).__code__
        where = f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno}"
        found.setdefault((code, parameter), Unused(name, parameter, where, documented))
    return sorted(found.values())


if __name__ == "__main__":
    for unused in unused_parameters():
        if not unused.documented or "--all" in sys.argv:
            print(f"{unused.where}\t{unused.name}\t{unused.parameter}")
