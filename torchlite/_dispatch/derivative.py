"""What a record's derivative formulas need, and the backward function made from them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from .plan import saved_key
from .record import Op
from .runtime import GLOBALS


def compile_source(op: Op, name: str, source: str, constants: dict[str, Any]):
    """Compile generated source so that tracebacks and debuggers show it under the op's name."""
    filename = f"<torchlite op {op.name}, declared at {op.file.rpartition('/')[2]}:{op.line}>"
    if filename in linecache.cache:
        filename = f"{filename[:-1]} ({name})>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    GLOBALS.update(constants)
    scope: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), GLOBALS, scope)
    return scope[name]


def backward_function(op: Op) -> Callable:
    """`backward(F, g, node, get, get_out)` -> one gradient (or tuple of them) a tensor argument."""
    if op._backward is not None:
        return op._backward
    plan, order = op.plan, [p.name for p in op.tensor_params]
    names = {p.name: p for p in op.params}
    lines = [
        "def backward(F, g, node, get, get_out):",
        "    edges, saved, versions = node.edges, node.saved, node.versions",
        "    if saved is None: freed(node)",
    ]
    for i, (_, kind, _) in enumerate(plan.saves):
        lines.append(
            f"    v{i} = get(saved[{i}], versions[{i}], node, {i})" if kind == "value" else f"    v{i} = saved[{i}]"
        )
    for name in plan.shapes:
        lines.append(f"    shape_{name} = shape_of(edges[{order.index(name)}])")
    for i in sorted(plan.keeps):
        lines.append(f"    o{i} = get_out(node, {i})")
    results = dict.fromkeys(order, "None")
    constants = {}
    for number, formula in enumerate(op.formulas):
        constants[f"{op.name}__vjp{number}"] = formula.function
        args = ["F", "g"]
        for need in formula.needs:
            if need == "needs":
                mask = ", ".join(_need(order.index(t), names[t]) for t in formula.targets)
                args.append(f"({mask},)")
            elif need[:3] == "out" and (need == "out" or need[3:].isdigit()):
                args.append(f"o{int(need[3:] or 0)}")
            elif need.endswith("_shape") and need[:-6] in plan.shapes:
                args.append(f"shape_{need[:-6]}")
            else:
                args.append(f"v{plan.position[saved_key(need, names)]}")
        wanted = " or ".join(f"edges[{order.index(t)}] is not None" for t in formula.targets)
        call_text = f"{op.name}__vjp{number}({', '.join(args)})"
        if len(formula.targets) == 1 and not isinstance(
            next(iter(op._vjp.keys()) if number == 0 else iter([list(op._vjp)[number]])), tuple
        ):
            lines.append(f"    r{number} = {call_text} if {wanted} else None")
            results[formula.targets[0]] = f"r{number}"
        else:
            nones = "(" + "None, " * len(formula.targets) + ")"
            lines.append(f"    r{number} = {call_text} if {wanted} else {nones}")
            for i, target in enumerate(formula.targets):
                results[target] = f"r{number}[{i}]"
    lines.append(f"    return ({', '.join(results[n] for n in order)}{',' if order else ''})")
    op._backward = compile_source(op, "backward", "\n".join(lines) + "\n", constants)
    return op._backward


def _need(position: int, param) -> str:
    if param.kind == "list":
        return f"edges[{position}] is not None and tuple(e is not None for e in edges[{position}])"
    return f"edges[{position}] is not None"
