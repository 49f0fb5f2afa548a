"""The formulas of the optimizers that have a fused kernel: Adam and AdamW, SGD, RMSprop, Adagrad.

A formula is Python text in two parts. `scalars` are numbers that change at most once a step. `update` changes one
element of the parameter `param` and of its states, given its gradient `grad`. Every implementation comes from this
text: the composite of the op, NumPy's calls in place, the OpenCL and CUDA source and the C++ source. The update of
single tensors in `torch.optim` follows PyTorch's own order of operations; tests compare it with the formula.

The language: assignments of one name, `if` on one name, `+ - * /`, unary minus, numbers, and the functions `sqrt`,
`maximum`, `lerp(start, end, weight)` and `bias_correction(beta, step)`, which is `1 - beta ** step`. In `update` a
state's name as a condition is true where the parameter has that state. The last statement is `param = ... - ...`.
"""

from __future__ import annotations

import ast
import functools
import math
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from .python_source import compile_function, parse


class Formula:
    """One optimizer's formula. `states` are its state arrays, `options` the arguments of the scalars."""

    def __init__(self, name: str, states: str, options: str, scalars: str, update: str) -> None:
        self.name, self.states, self.options = name, tuple(states.split()), tuple(options.split())
        self._texts = scalars, update

    @functools.cached_property
    def scalars(self) -> list[Any]:
        """The statements of the scalars."""
        return parse(textwrap.dedent(self._texts[0])).body

    @functools.cached_property
    def update(self) -> list[Any]:
        """The statements of the update, `lerp` expanded."""
        return _ExpandLerp().visit(parse(textwrap.dedent(self._texts[1]))).body

    @functools.cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of all numbers that the update reads, those that change with each step last."""
        known = {*self.options, *(statement.targets[0].id for statement in self.scalars)}
        read = dict.fromkeys(
            node.id for s in self.update for node in ast.walk(s) if isinstance(node, ast.Name) and node.id in known
        )
        return tuple(sorted(read, key=self.numbers_of_step.__contains__))

    @functools.cached_property
    def fixed_count(self) -> int:
        """Number of of the numbers do not change with each step."""
        return len(set(self.numbers) - self.numbers_of_step)

    @functools.cached_property
    def numbers_of_step(self) -> frozenset[str]:
        """The scalars that depend on the count of steps."""
        found = {"step"} & {*self.options}
        for statement in self.scalars:
            if found & find_names(statement.value):
                found.add(statement.targets[0].id)
        return frozenset(found)

    @functools.cached_property
    def host_numbers(self) -> Callable[..., tuple[float, ...]]:
        """The function from the options, in order, to the numbers."""
        return self.host_function(self.numbers)

    def host_function(self, names: tuple[str, ...]) -> Callable[..., tuple[float, ...]]:
        """The function from the options, in order, to some scalars."""
        wanted, lines = set(names), []
        for statement in reversed(self.scalars):
            if statement.targets[0].id in wanted:
                wanted |= find_names(statement.value)
                lines.append(f"    {ast.unparse(statement)}\n")
        text = f"def numbers({', '.join(self.options)}):\n{''.join(reversed(lines))}    return {', '.join(names)},\n"
        space = {"sqrt": math.sqrt, "bias_correction": lambda beta, step: 1 - beta**step}
        return compile_function("numbers", text, f"<{self.name}: {' '.join(names)}>", space)

    def specialize(self, known: Mapping[str, Any], ones: Container[str] = ()) -> list[Any]:
        """The statements of the update without conditions on `known` names, and without products with numbers that
        are 1.
        """
        return [_DropOnes(ones).visit(s) if ones else s for s in _choose_branch(parse_again(self.update), known)]


def find_names(node: ast.AST) -> set[str]:
    """All names in an expression."""
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


def parse_again(statements: list[Any]) -> list[Any]:
    """A copy of some statements, which transformers may change."""
    return parse("\n".join(map(ast.unparse, statements))).body


def _choose_branch(statements: list[Any], known: Mapping[str, Any]) -> Iterator[Any]:
    for statement in statements:
        if not isinstance(statement, ast.If):
            yield statement
        elif statement.test.id in known:  # type: ignore[attr-defined]
            taken = known[statement.test.id]  # type: ignore[attr-defined]
            yield from _choose_branch(statement.body if taken else statement.orelse, known)
        else:
            statement.body = list(_choose_branch(statement.body, known))
            statement.orelse = list(_choose_branch(statement.orelse, known))
            yield statement


class _ExpandLerp(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        """`lerp(a, b, w)` becomes `a + (b - a) * w`."""
        self.generic_visit(node)
        if node.func.id != "lerp":  # type: ignore[attr-defined]
            return node
        start, end, weight = map(ast.unparse, node.args)
        return parse(f"{start} + ({end} - {start}) * {weight}", mode="eval").body


class _DropOnes(ast.NodeTransformer):
    def __init__(self, ones: Container[str]) -> None:
        self._ones = ones

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """`a * one` becomes `a`."""
        self.generic_visit(node)
        one = isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name) and node.right.id in self._ones
        return node.left if one else node


_GRADIENT = """
if maximize:
    grad = -grad
if {decay}:
    grad = grad + param * {decay}
"""

ADAM = Formula(
    "adam",
    states="exp_avg exp_avg_sq max_exp_avg_sq",
    options="step lr beta1 beta2 eps weight_decay decoupled maximize",
    scalars="""
        root = sqrt(bias_correction(beta2, step))
        decay = 0.0 if decoupled else weight_decay
        new_mean = 1 - beta1
        new_square = 1 - beta2
        shrink = 1 - lr * weight_decay if decoupled else 1.0
        eps_hat = eps * root
        step_size = lr * root / bias_correction(beta1, step)
    """,
    # `eps_hat` as in section 2 of Kingma and Ba: the bias corrections of both moments are in `step_size`.
    update=_GRADIENT.format(decay="decay")
    + """
exp_avg = lerp(exp_avg, grad, new_mean)
exp_avg_sq = exp_avg_sq * beta2 + grad * grad * new_square
second = exp_avg_sq
if max_exp_avg_sq:
    max_exp_avg_sq = maximum(max_exp_avg_sq, exp_avg_sq)
    second = max_exp_avg_sq
param = param * shrink - exp_avg / (sqrt(second) + eps_hat) * step_size
""",
)
SGD = Formula(
    "sgd",
    states="momentum_buffer",
    options="first lr momentum dampening weight_decay nesterov maximize",
    scalars="fresh = 1 - dampening",
    update=_GRADIENT.format(decay="weight_decay")
    + """
if momentum_buffer:
    if first:
        momentum_buffer = grad
    else:
        momentum_buffer = momentum_buffer * momentum + grad * fresh
    if nesterov:
        grad = grad + momentum_buffer * momentum
    else:
        grad = momentum_buffer
param = param - grad * lr
""",
)
RMSPROP = Formula(
    "rmsprop",
    states="square_avg grad_avg momentum_buffer",
    options="lr alpha eps momentum weight_decay maximize",
    scalars="new = 1 - alpha",
    update=_GRADIENT.format(decay="weight_decay")
    + """
square_avg = square_avg * alpha + grad * grad * new
average = square_avg
if grad_avg:
    grad_avg = lerp(grad_avg, grad, new)
    average = square_avg - grad_avg * grad_avg
delta = grad / (sqrt(average) + eps)
if momentum_buffer:
    momentum_buffer = momentum_buffer * momentum + delta
    delta = momentum_buffer
param = param - delta * lr
""",
)
ADAGRAD = Formula(
    "adagrad",
    states="sum",
    options="step lr lr_decay eps weight_decay maximize",
    scalars="rate = lr / (1 + (step - 1) * lr_decay)",
    update=_GRADIENT.format(decay="weight_decay")
    + """
sum = sum + grad * grad
param = param - grad / (sqrt(sum) + eps) * rate
""",
)
