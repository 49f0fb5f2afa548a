"""Optimizer steps for several parameters, with states concatenated in flat arrays.

The update of an element is that of `torchlite._types.optimizer_formulas`. A work-group updates TILE elements of one
parameter, a work-item LANES at a time (1 on GPUs; only OpenCL uses wider vectors). `step_source` returns the program
for K parameters.
"""

from __future__ import annotations

import ast
from typing import Any

from torchlite._types.optimizer_formulas import Formula, find_names, parse_again

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def c_expression_source(node: ast.AST, names: dict[str, str]) -> str:
    """Return an expression of a formula in C. `names` maps names and functions; others are unchanged."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.UnaryOp):
        return f"(-{c_expression_source(node.operand, names)})"
    if isinstance(node, ast.BinOp):
        left, right = c_expression_source(node.left, names), c_expression_source(node.right, names)
        return f"({left} {_OPERATORS[type(node.op)]} {right})"
    if not isinstance(node, ast.Call):
        raise TypeError(f"a formula has no {type(node).__name__}")
    arguments = ", ".join([c_expression_source(part, names) for part in node.args])
    return f"{c_expression_source(node.func, names)}({arguments})"


def c_statements_source(statements: list, names: dict[str, str], kind: str) -> str:
    """Return the statements of a formula in C; names that are not in `names` are declared with the type `kind`."""
    names, lines = dict(names), []
    for s in statements:
        if isinstance(s, ast.If):
            lines.append(
                f"if ({c_expression_source(s.test, names)} != 0) {{ {c_statements_source(s.body, names, kind)} }}"
            )
            lines += [f"else {{ {c_statements_source(s.orelse, names, kind)} }}"] if s.orelse else []
            continue
        name = s.targets[0].id  # type: ignore[attr-defined]
        declared = "" if name in names else f"{kind} "
        value = c_expression_source(s.value, names)
        lines.append(f"{declared}{names.setdefault(name, name)} = {value};")
    return "\n".join(lines)


# The array of a work-group, and its elements.
_FIND = r"""
    int k = 0;
    while (BLOCK >= l.first[k + 1]) k++;
    const int start = (BLOCK - l.first[k]) * TILE, stop = min(TILE, l.size[k] - start);"""
_WALK = r"""
    for (int i = THREAD * LANES; i < stop; i += THREADS * LANES) {
#if LANES > 1
        if (i + LANES <= stop) {
VECTOR
            continue;
        }
#endif
        for (int j = i; j < stop && j < i + LANES; j++) {
SCALAR
        }
    }
"""
_STEP = (
    r"""
typedef struct { int first[K + 1], size[K], state[K], p[K], g[K], start[3] SCALARS; } Layout;
typedef struct { T_C v[8]; } Numbers;
KERNEL void update_all(POINTERS, const Layout l, const Numbers n) {
SCALER"""
    + _FIND
    + r"""
    GLOBAL T* param; GLOBAL GRADIENT* grad;
    switch (k) {
CASES
    }
    param += l.p[k];
    param += start;
    grad += l.g[k];
    grad += start;
POINTED"""
    + _WALK
    + "}\n"
)


def _find_bias_corrections(statement: Any) -> list[Any]:
    """Return the calls of `bias_correction` in a statement."""
    calls: list[Any] = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
    return [call for call in calls if call.func.id == "bias_correction"]


def list_numbers_options(formula: Formula) -> tuple[str, ...]:
    """Return the scalars that `numbers_source` takes, `log_beta` for each beta whose power it computes."""
    read = dict.fromkeys(formula.numbers[: formula.fixed_count])
    for s in formula.scalars:
        if s.targets[0].id in formula.numbers_of_step:
            betas = [call.args[0].id for call in _find_bias_corrections(s)]
            others = find_names(s.value) - formula.numbers_of_step - {"sqrt", "bias_correction", *betas}
            read |= dict.fromkeys([f"log_{beta}" for beta in betas] + sorted(others))
    return tuple(read)


def numbers_source(formula: Formula) -> str:
    """Return the kernel that computes a formula's numbers from its step count, for steps with numbers on the device.

    In a captured graph they change with every replay.
    """
    options = list_numbers_options(formula)
    names = {name: f"o.{name}" for name in options} | {"step": "steps"}
    of_step = parse_again([s for s in formula.scalars if s.targets[0].id in formula.numbers_of_step])
    for s in of_step:
        for call in _find_bias_corrections(s):  # 1 - beta ** steps without cancellation
            call.args[0].id = f"log_{call.args[0].id}"
    names["bias_correction"] = "BIAS_CORRECTION"
    computed = c_statements_source(of_step, names, "const T_C")
    values = [names.get(name, name) for name in formula.numbers] + ["0"] * (NUMBERS - len(formula.numbers))
    written = " ".join(f"numbers[{i}] = {value};" for i, value in enumerate(values))
    return (
        "#define BIAS_CORRECTION(log_beta, steps) (-expm1((steps) * (log_beta)))\n"
        f"typedef struct {{ T_C {', '.join(options)}; }} Options;\n"
        f"KERNEL void {formula.name}_numbers(GLOBAL const float* count, GLOBAL T* numbers, const Options o) {{\n"
        f"    if (ITEM > 0) return;\n    const T_C steps = count[0];\n{computed}\n{written}\n}}\n"
    )


NUMBERS = 8  # a step's numbers, at most
_GIVEN, _KEPT = (
    "const Layout l, const Numbers n) {\n",
    "GLOBAL const T* numbers, const Layout l) {\n"
    "    Numbers n;\n"
    "    for (int j = 0; j < 8; j++) n.v[j] = numbers[j];\n",
)


def _update_source(formula: Formula, states: tuple[str, ...], place: str, width: str, scaled: bool) -> str:
    """Return code that loads, steps and stores `width` elements."""
    kind, arrays = f"T_C{width}", [("param", "param"), *((s, f"state_{s}") for s in states)]
    lines = [f"{kind} v_{x} = T_LD{width}({array}, {place});" for x, array in arrays]
    lines += [f"{kind} v_grad = T_LD{width}(grad, {place}){' / scale' if scaled else ''};"]
    lines += [f"T_ST{width}(grad, {place}, v_grad);"] if scaled else []
    names = {name: f"n.v[{i}]" for i, name in enumerate(formula.numbers)} | {"sqrt": "sqrt", "maximum": "fmax"}
    names |= {x: f"v_{x}" for x in ("grad", "param", *states)}
    lines += [c_statements_source(formula.specialize({s: s in states for s in formula.states}), names, kind)]
    lines += [f"T_ST{width}({array}, {place}, v_{x});" for x, array in arrays]
    return "\n".join(lines)


def _switch_cases_source(count: int, text: str) -> str:
    """Return the cases of a switch over array numbers."""
    return "\n".join(
        [
            *(f"    case {k}: {text.replace('{k}', str(k))} break;" for k in range(1, count)),
            f"    default: {text.replace('{k}', '0')}",
        ]
    )


def _substitute_parts(text: str, count: int, lanes: int, tile: int, parts: dict[str, str]) -> str:
    """Return a program with its parts substituted."""
    for key, value in parts.items():
        text = text.replace(key, value)
    return f"#define K {count}\n#define LANES {lanes}\n#define TILE {tile}\n" + text


# Outputs of a gradient scaler, in this order.
SCALER = {
    "found_inf": "    if (found_inf[l.found_inf] != 0) return;",
    "grad_scale": "    const T_C scale = grad_scale[l.grad_scale];",
}


def step_source(
    formula: Formula,
    count: int,
    states: tuple[str, ...],
    lanes: int,
    tile: int,
    kept: bool = False,
    scaler: tuple[str, ...] = (),
) -> str:
    """Return the program that steps `count` parameters with these flat states by a formula.

    kept: its numbers are in memory. scaler: the available members of SCALER: with a non-zero `found_inf` the step is
    skipped; gradients are divided by `grad_scale`, in place.
    """
    scaled = "grad_scale" in scaler
    gradient = "T" if scaled else "const T"
    pointers = [f"GLOBAL T* p{k}, GLOBAL {gradient}* g{k}" for k in range(count)] + [f"GLOBAL T* {s}_" for s in states]
    pointers += [f"GLOBAL const float* {x}" for x in scaler]
    pointed = "\n".join(
        f"    GLOBAL T* state_{s} = {s}_ + l.start[{i}] + l.state[k];\n    state_{s} += start;"
        for i, s in enumerate(states)
    )
    parts = {
        "POINTERS": ", ".join(pointers),
        "CASES": _switch_cases_source(count, "param = p{k}; grad = g{k};"),
        "POINTED": pointed,
        "GRADIENT": gradient,
        "SCALARS": "".join(f", {x}" for x in scaler),
        "SCALER": "\n".join(SCALER[x] for x in scaler),
        "VECTOR": _update_source(formula, states, "i", str(lanes), scaled),
        "SCALAR": _update_source(formula, states, "j", "", scaled),
    }
    return _substitute_parts(_STEP.replace(_GIVEN, _KEPT) if kept else _STEP, count, lanes, tile, parts)


_UNSCALE = (
    r"""
typedef struct { int first[K + 1], size[K], grad[K], found, factor; } Layout;
KERNEL void unscale_all(POINTERS, GLOBAL float* found, GLOBAL const float* factor, const Layout l) {"""
    + _FIND
    + r"""
    GLOBAL T* grad;
    switch (k) {
CASES
    }
    grad += l.grad[k];
    grad += start;
    const T_C by = factor[l.factor];
    int bad = 0;"""
    + _WALK
    + r"""
    if (bad) found[l.found] = 1;
}
"""
)


def _unscale_lines_source(place: str, width: str) -> str:
    """Return code that checks and multiplies `width` elements."""
    bad = "any(isfinite(v) == 0)" if width else "!isfinite(v)"
    return (
        f"const T_C{width} v = T_LD{width}(grad, {place});\n"
        f"bad |= {bad};\n"
        f"if (by != 1) T_ST{width}(grad, {place}, v * by);"
    )


def unscale_source(count: int, lanes: int, tile: int) -> str:
    """Return the program that multiplies `count` gradients by `factor` and sets `found` to 1 for an infinity or NaN."""
    parts = {
        "POINTERS": ", ".join(f"GLOBAL T* g{k}" for k in range(count)),
        "CASES": _switch_cases_source(count, "grad = g{k};"),
    }
    return _substitute_parts(
        _UNSCALE,
        count,
        lanes,
        tile,
        parts | {"VECTOR": _unscale_lines_source("i", str(lanes)), "SCALAR": _unscale_lines_source("j", "")},
    )
