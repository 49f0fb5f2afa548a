"""Prints programs as TorchScript graphs, and lists the operators they use."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from ._python_translator import dotted_name
from ._script_modules import RecursiveScriptModule

# Operators that draw random numbers, out of place and in place.
_RANDOM = frozenset(
    "rand randn randint randperm bernoulli multinomial normal poisson binomial dropout alpha_dropout feature_dropout "
    "feature_alpha_dropout rrelu rand_like randn_like randint_like uniform_ normal_ bernoulli_ exponential_ cauchy_ "
    "geometric_ log_normal_ random_ dropout_ rrelu_ native_dropout _standard_gamma _sample_dirichlet".split()
)


class ScriptGraph:
    """Graph of a function, printed one call per line as in `torch.jit`."""

    def __init__(self, script: Any, name: str):
        self._lines = _GraphPrinter(script)
        self._name = name
        self._text = self._lines.function(script.nodes[name]) if name in script.nodes else "graph():\n  return ()\n"

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def str(self, print_source_ranges: bool = True) -> str:
        """Return the graph's text."""
        return self._text

    def nodes(self) -> Iterator[ScriptNode]:
        """Return the calls of the outermost block, in their order."""
        return iter([ScriptNode(line.strip()) for line in self._text.splitlines() if line[:3].startswith("  %")])

    def findAllNodes(self, kind: builtins.str, recurse: bool = True) -> list[ScriptNode]:
        """Return the calls of an operator, such as "aten::add", with or without those of inner blocks."""
        lines = [line for line in self._text.splitlines() if recurse or line[:3].startswith("  %")]
        found = [ScriptNode(line.strip()) for line in lines if line.lstrip()[:1] == "%"]
        return [node for node in found if node.kind() == kind]


class ScriptNode:
    """A line of a `ScriptGraph`: the call of an operator."""

    def __init__(self, text: str):
        self._text = text
        self._kind = text.partition(" = ")[2].partition("(")[0].partition("[")[0]

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def kind(self) -> str:
        """Return the operator, such as "aten::add"."""
        return self._kind

    def isNondeterministic(self) -> bool:
        """True if the operator draws random numbers."""
        return self._kind.removeprefix("aten::") in _RANDOM


def type_text(node: ast.AST) -> str:
    """Return an annotation as a graph prints it: `int[]`, `Tensor?`, `Dict(str, int)`, `(int, str)`, `Union(int,
    str)`.
    """
    if not isinstance(node, ast.Subscript):
        return ast.unparse(node)
    outer = (dotted_name(node.value) or "").rpartition(".")[2]
    parts = [type_text(part) for part in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]
    if outer in ("List", "Optional") and len(parts) == 1:
        return parts[0] + ("[]" if outer == "List" else "?")
    if outer == "Tuple":
        return f"({', '.join(p for p in parts if p != '()')})"
    if outer == "Union":
        flat = [one for part in parts for one in ((part[:-1], "NoneType") if part.endswith("?") else (part,))]
        return f"Union({', '.join(sorted(dict.fromkeys(flat), key=str.lower))})"
    return f"{outer}({', '.join(parts)})"


class _GraphPrinter:
    def __init__(self, script: Any):
        self._script, self._lines = script, []  # type: ignore[var-annotated]
        self._count = 0

    def function(self, node: ast.FunctionDef) -> str:
        owner = self._script.name if self._script.kind == "Module" else None
        inputs = []
        for place, a in enumerate(node.args.args):
            kind = owner if owner and not place else type_text(a.annotation) if a.annotation else "Tensor"
            inputs.append(f"%{a.arg} : {kind}")
        self._print_block(node.body, 1)
        return f"graph({(',' + chr(10) + '      ').join(inputs)}):\n" + "".join(self._lines)

    def _print_line(self, depth: int, text: str) -> None:
        self._lines.append("  " * depth + text + "\n")

    def _new_value_name(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def _print_block(self, body: list, depth: int) -> None:
        for node in body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                names = (
                    [f"%{ast.unparse(t)}" for t in target.elts]
                    if isinstance(target, ast.Tuple)
                    else [f"%{ast.unparse(target)}"]
                )
                self._print_value(node.value, depth, ", ".join(names))
            elif isinstance(node, ast.Return):
                self._print_line(depth, f"return ({self._print_value(node.value, depth) if node.value else ''})")
            elif isinstance(node, (ast.If, ast.While, ast.For)):
                self._print_control_flow(node, depth)
            elif isinstance(node, ast.Expr):
                self._print_value(node.value, depth)
            elif not isinstance(node, ast.Pass):
                self._print_line(depth, ast.unparse(node).split("\n")[0])

    def _print_control_flow(self, node: Any, depth: int) -> None:
        test = node.iter if isinstance(node, ast.For) else node.test
        kind = "prim::If" if isinstance(node, ast.If) else "prim::Loop"
        self._print_line(depth, f"{self._new_value_name()} = {kind}({self._print_value(test, depth)})")
        self._print_line(depth + 1, "block0():")
        self._print_block(node.body, depth + 2)
        if isinstance(node, ast.If):
            self._print_line(depth + 1, "block1():")
            self._print_block(node.orelse, depth + 2)

    def _print_value(self, node: ast.AST, depth: int, name: str | None = None) -> str:
        if isinstance(node, ast.Name) and name is None:
            return f"%{node.id}"
        if isinstance(node, ast.Constant) and name is None:
            made = self._new_value_name()
            self._print_line(depth, f"{made} : {type(node.value).__name__} = prim::Constant[value={node.value!r}]()")
            return made
        kind, parts = _split_operator_and_inputs(node)
        values = [self._print_value(part, depth) for part in parts]
        made = name or self._new_value_name()
        self._print_line(depth, f"{made} = {kind}({', '.join(values)})")
        return made


def _split_operator_and_inputs(node: ast.AST) -> tuple[str, list]:
    """Return an expression's operator and inputs."""
    if isinstance(node, ast.Call):
        path = dotted_name(node.func) or ""
        inputs = [*node.args, *(k.value for k in node.keywords)]
        if path.startswith("torch."):
            return f"aten::{path.removeprefix('torch.')}", inputs
        if path.startswith("ops."):
            space, _, name = path.removeprefix("ops.").partition(".")
            return f"{space}::{name}", inputs
        if path.startswith("__torch__") or isinstance(node.func, ast.Name):
            return f'prim::CallFunction["{path}"]' if path.startswith("__torch__") else f"prim::{path}", inputs
        if isinstance(node.func, ast.Attribute):
            return f'prim::CallMethod[name="{node.func.attr}"]', [node.func.value, *inputs]
    if isinstance(node, ast.Attribute):
        return f'prim::GetAttr[name="{node.attr}"]', [node.value]
    if isinstance(node, (ast.List, ast.Tuple)):
        return f"prim::{type(node).__name__}Construct", list(node.elts)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return "aten::__getitem__", [node.value, node.slice]
    return f"prim::{type(node).__name__}", [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]


def graph_of(script: Any, name: str) -> ScriptGraph:
    """Return the graph of a function or method. Raise RuntimeError if it has no text."""
    script.text(name)
    return ScriptGraph(script, name)


def operators_of(module: Any) -> list[str]:
    """Return the operators that a module's program uses."""
    found: set[str] = set()
    for part in module._actual_script_module.modules():
        if isinstance(part, RecursiveScriptModule):
            for node in part._script.nodes.values():
                for call in ast.walk(node):
                    path = dotted_name(call.func) if isinstance(call, ast.Call) else None
                    if path is not None and path.startswith("torch."):
                        found.add(f"aten::{path.removeprefix('torch.')}")
    return sorted(found)
