"""Pass that saves an activation's derivative f'(x) for the backward pass instead of its input x."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step


def save_derivatives(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> tuple[Program, Layouts]:
    """Replace an activation and its backward step: the forward computes f(x) and f'(x), the backward is a product.
    Applies if only the backward step needs x that late. Updates `layouts`.
    """
    layouts = dict(layouts)
    slots = (n for step in program.steps for n in (*step.uses(), *step.makes()))
    free = 1 + max([*layouts, *slots, *program.inputs], default=0)
    memory = AliasAnalysis(program, place)
    last: dict[Any, list[int]] = {}  # last steps that use a memory
    for at, step in enumerate(program.steps):
        for n in step.uses():
            last.setdefault(memory.of(n), []).append(at)
    steps = list(program.steps)
    for at, step in enumerate(program.steps):
        if step.out.__class__ is not Slot or not step.args or step.args[0].__class__ is not Slot:
            continue
        number = step.args[0].number
        options = *step.args[1:], *step.kwargs.values()
        used = last[memory.of(number)]
        if used[-2:-1] != [at] or not memory.is_plain(number) or number not in layouts:
            continue
        then = program.steps[used[-1]]
        if not _is_backward_of(then, step, options, layouts):
            continue
        kernel = table.backend.with_derivative(step.name, *options)
        if kernel is None:
            continue
        slope, free = Slot(free), free + 1
        layouts[slope.number] = layouts[number]
        steps[at] = replace(step, kernel=kernel, args=step.args[:1], kwargs={}, out=(step.out, slope))
        steps[used[-1]] = replace(then, name="mul", kernel=table.mul, args=(slope, then.args[0]))
    return replace(program, steps=steps), layouts


def _is_backward_of(then: Step, step: Step, options: tuple, layouts: Layouts) -> bool:
    """True if a step is an activation's backward with arrays of the same layout."""
    if then.name != f"_{step.name}_backward" or len(then.args) < 2 or then.args[1] != step.args[0] or then.kwargs:
        return False
    if then.args[2:] != options or then.out.__class__ is not Slot or then.args[0].__class__ is not Slot:
        return False
    input = layouts[step.args[0].number]
    others = [layouts.get(slot.number) for slot in (step.out, then.args[0], then.out)]
    return input[2] and input[1].char in "fd" and all(other == input for other in others)
