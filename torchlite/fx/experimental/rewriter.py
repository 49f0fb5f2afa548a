"""AST rewriting before symbolic tracing: `assert` becomes a traceable call."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from types import FunctionType
from typing import Any

from ..._types.python_source import compile_source, parse
from ...nn.modules.module import Module
from .._symbolic_trace import Tracer
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions; subclasses add `visit_X` methods."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """Return the rewritten function."""
        lines, _ = inspect.getsourcelines(fn)
        source = "".join(lines)
        if source[:1].isspace():  # an indented source compiles inside a block, without changes to its strings
            block: Any = parse(f"if True:\n{source}").body[0]
            parsed = ast.Module(block.body, [])
        else:
            parsed = parse(source)
        tree: Any = ast.fix_missing_locations(self.visit(parsed))
        # (A method may refer to its class by a closure cell, so it is compiled inside a function with one.)
        (definition,) = tree.body
        definition.decorator_list = []
        free = fn.__code__.co_freevars
        if free:
            shell = parse(f"def _outer({', '.join(free)}):\n    pass\n    return {definition.name}")
            shell.body[0].body[0] = definition  # type: ignore[attr-defined]
            tree = ast.fix_missing_locations(shell)
        names = compile_source(tree, inspect.getsourcefile(fn) or "", dict(fn.__globals__), {})
        rewritten = names["_outer"](*[None] * len(free)) if free else names[definition.name]
        by_name = dict(zip(free, fn.__closure__ or (), strict=True))
        cells = tuple(by_name[name] for name in rewritten.__code__.co_freevars)
        rewritten = FunctionType(rewritten.__code__, fn.__globals__, fn.__name__, fn.__defaults__, cells)
        functools.update_wrapper(rewritten, fn)
        rewritten.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return rewritten

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Replace the statement by `torch._assert(test, message)`."""
        call: Any = parse("torch._assert()").body[0]
        call.value.args = [node.test, node.msg or ast.Constant(value="")]
        return ast.copy_location(call, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Replace `x: kind = value` by `x = annotate(value, kind)`."""
        if node.value is None:
            return node
        call = ast.Call(func=ast.Name(id="annotate", ctx=ast.Load()), args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """Tracer that rewrites the program first."""

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Return the graph of the rewritten program."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(thing: Any) -> Any:
    """Return a rewritten function, or a module with all submodules rewritten."""
    if not isinstance(thing, Module):
        return AST_Rewriter().rewrite(thing)
    forward: Any = thing.forward
    own: Any = type(thing)
    cls: Any = type(
        "RewrittenModule", (own,), {"forward": AST_Rewriter().rewrite(forward.__func__), "__module__": own.__module__}
    )
    made = cls.__new__(cls)
    for name, value in vars(thing).items():
        made.__dict__[name] = copy.copy(_rewrite(value)) if isinstance(value, Module) else copy.copy(value)
    return made
