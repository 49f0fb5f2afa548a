"""Moves functions that keep the order of numbers behind the maximum pooling that reads their results."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

from .alias_analysis import AliasAnalysis
from .fuse_conv_bn_act import clamp_range_of
from .power_reduction import constant_number
from .program_ir import Layouts, Program, Slot, Step

_CLAMPS = ("_clamp_scalars", "clamp_min", "clamp_max")


def pool_before_activations(program: Program, layouts: Layouts, place: dict[int, int]) -> Program:
    """Pool images before the activation that made them, which then has fewer numbers to compute.

    The greatest number of a window stays the greatest one, so the result is the same. `layouts` and `place` get the
    new slots.
    """
    if not any(step.name == "_max_pool" for step in program.steps):
        return program
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    makers = {step.out.number: at for at, step in enumerate(program.steps) if step.out.__class__ is Slot}
    fresh = itertools.count(1 + max([0, *makers, *layouts, *program.held, *place]))
    found: dict[int, list[Step]] = {}  # steps by the place of those that they replace
    for at, step in enumerate(program.steps):
        if step.name != "_max_pool" or step.args[0].__class__ is not Slot or step.out.__class__ is not Slot:
            continue
        source, before = step.args[0], []
        while source.number in makers and count[source.number] == 1 and memory.is_plain(source.number):
            one = program.steps[makers[source.number]]
            given = _input_of(one, program, layouts)
            if given is None or memory.of(given.number) in memory.written or step.out.number not in layouts:
                break
            before.append(makers[source.number])
            source = given
        if not before:
            continue
        pooled = [Slot(next(fresh)) for _ in before]
        for slot in pooled:
            layouts[slot.number] = layouts[step.out.number]
            place[slot.number] = 1 + max(place.values(), default=0)
        made = [replace(step, args=(source, *step.args[1:]), out=pooled[0])]
        for number, (given, out) in zip(reversed(before), itertools.pairwise([*pooled, step.out]), strict=True):
            one = program.steps[number]
            old = _input_of(one, program, layouts)
            made.append(replace(one, args=tuple([given if value == old else value for value in one.args]), out=out))
            found[number] = []
        found[at] = made
    steps = [one for at, step in enumerate(program.steps) for one in found.get(at, [step])]
    return replace(program, steps=steps)


def _input_of(step: Step, program: Program, layouts: Layouts) -> Slot | None:
    """Return the array that a step maps to another one of its shape by a function that never decreases, else None."""
    if step.kwargs or step.out.__class__ is not Slot:
        return None
    first, *others = step.args or (None,)
    numbers = [constant_number(value, program) for value in step.args]
    if step.name in ("maximum", "minimum") and len(others) == 1 and (numbers[0] is None) != (numbers[1] is None):
        found = others[0] if numbers[1] is None else first
    elif step.name == "leaky_relu" and (not others or numbers[1] is not None and numbers[1] >= 0):
        found = first
    elif step.name in _CLAMPS:
        found = first if all(number is not None for number in numbers[1:]) else None
    else:
        found = None if clamp_range_of(step) is None else first
    if found.__class__ is not Slot or layouts.get(found.number, ())[:2] != layouts.get(step.out.number, (None,))[:2]:
        return None
    kind = layouts[found.number][1]
    return found if kind.kind == "f" else None
