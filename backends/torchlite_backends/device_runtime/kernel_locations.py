"""Where the kernel of an op is defined, and the modules of `kernel_sources` with its text; needs no device."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
from types import FunctionType
from typing import Any

from torchlite._types.python_source import parse

_SOURCES = f"{__name__.partition('.')[0]}.kernel_sources"
_FOLDER = os.path.dirname(os.path.dirname(__file__))  # of torchlite_backends


def kernel_location(kernels: dict[str, Any], op: str) -> str:
    """Return the file and line of an op's kernel, and the files with the text that it compiles. "" without one."""
    kernel = kernels.get(op)
    # Behind a `partial` is the function that takes the device first.
    return "" if kernel is None else describe_kernel(inspect.unwrap(getattr(kernel, "func", kernel)))


def describe_kernel(kernel: FunctionType) -> str:
    """Return the file and line of a kernel, and the files with the text that it compiles."""
    path = os.path.relpath(kernel.__code__.co_filename, _FOLDER)
    sources = ", ".join(f"kernel_sources/{name}.py" for name in source_modules(kernel))
    return f"{path}:{kernel.__code__.co_firstlineno}" + (f"; text in {sources}" if sources else "")


def source_modules(kernel: FunctionType) -> list[str]:
    """Return the modules of `kernel_sources` from which a kernel uses names, by itself or through its module's other
    definitions. Of a kernel with a closure, such as one for each rule, and of one that uses none, they are all that
    its module imports.
    """
    imported, used = _module_names(kernel.__module__)
    if kernel.__closure__:
        return sorted(set(imported.values()))
    reached, pending = set(), [kernel.__qualname__.partition(".")[0]]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += used.get(name, ())
    return sorted({imported[name] for name in reached & imported.keys()} or set(imported.values()))


@functools.cache
def _module_names(module: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """For each name that a module imports from `kernel_sources`, the module there; for each name that it defines, the
    names in its definition.
    """
    tree = parse(inspect.getsource(sys.modules[module]))
    imported: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_SOURCES):
            for alias in node.names:
                home = alias.name if node.module == _SOURCES else str(node.module).rpartition(".")[2]
                imported[alias.asname or alias.name] = home
            continue
        defined = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        defined += [
            n.id for target in targets if target is not node for n in ast.walk(target) if isinstance(n, ast.Name)
        ]
        for name in defined:
            used.setdefault(name, set()).update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return imported, used
