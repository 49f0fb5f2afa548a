"""Runs chains of elementwise steps by a backend's interpreter, if it has one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .cast_elimination import is_cast_back, is_narrow_cast
from .fusion_groups import FusionGroup, form_fusion_groups, pointwise_shape
from .program_ir import Layouts, Program, Slot, Step

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend

_F32 = np.dtype(np.float32)
# A call of the interpreter takes 2 microseconds, as four calls of NumPy's or 4096 numbers of one op.
_LEAST_STEPS, _LEAST_NUMBERS = 4, 1 << 12


def bind_chains(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Replace groups of elementwise steps by one step each."""

    makers = {step.out.number: step for step in program.steps if step.out.__class__ is Slot}

    def shape_of(step: Step, layouts: Layouts) -> tuple | None:
        if step.name != "to":
            return pointwise_shape(step, layouts)
        # A cast of quantized values; it is no view, as the dtypes differ.
        if not (is_cast_back(step) or is_narrow_cast(step, makers, layouts)) or step.out.number not in layouts:
            return None
        found = [layouts.get(n) for n in (*step.uses(), step.out.number)]
        return layouts[step.out.number][0] if all(one is not None and one[2] for one in found) else None

    def is_served(step: Step) -> bool:
        operands = _operands_of(step)
        slots = [slot.number for slot in (*operands, step.out) if slot.__class__ is Slot]
        return backend.chain_serves(step.name, len(operands), [layouts[n][1] for n in slots])

    steps: list[Step] = []
    for one in form_fusion_groups(program, layouts, 1, is_served, shape_of):
        if isinstance(one, Step):
            shape = shape_of(one, layouts)
            if shape is None or not is_served(one):
                steps.append(one)
                continue
            one = FusionGroup(shape, [one], given=list(dict.fromkeys(one.uses())), outs=[one.out.number])
        read = {*one.outs, *(() if one.ending is None else one.ending.uses())}
        outs = [n for step in one.steps for n in step.makes() if n in read]
        found = _bind(replace(one, outs=outs), layouts, program.held, backend)
        steps += one.steps if found is None else [found]
        steps += [] if one.ending is None else [one.ending]
    return replace(program, steps=steps)


# A chain computes in float32: a cast to 8-bit integers leaves whole numbers.
_USUAL = {"round": {"decimals": 0}, "gelu": {"approximate": "none"}}  # keyword arguments that a chain's op implies
_OTHER_NAMES = {"_clamp_scalars": "clamp_max", "to": "trunc"}


def _operands_of(step: Step) -> tuple:
    """Return the slots and numbers that a step reads; () if it has other arguments."""
    plain = not step.kwargs or _USUAL.get(step.name) == step.kwargs
    if step.name == "to":
        return step.args[:1]
    args = step.args if plain and all(v.__class__ in (Slot, int, float) for v in step.args) else ()
    if step.name == "leaky_relu" and len(args) == 1:
        return (*args, 0.01)
    return args


def _bind(group: FusionGroup, layouts: Layouts, held: dict[int, Any], backend: AnyBackend) -> Step | None:
    if len(group.steps) < _LEAST_STEPS and len(group.steps) * math.prod(group.shape) < _LEAST_NUMBERS:
        return None
    constants = {n: held[n].item() for n in group.given if n in held and held[n].size == 1 and held[n].dtype == _F32}
    given = [n for n in group.given if n not in constants]
    numbers: dict[int, Any] = {n: i for i, n in enumerate(given)} | constants
    steps: list[tuple[str, tuple]] = []
    for step in group.steps:
        operands = [numbers[v.number] if v.__class__ is Slot else float(v) for v in _operands_of(step)]
        if step.name == "_clamp_scalars":
            steps.append(("clamp_min", (operands[0], operands[1])))
            operands = [len(given) + len(steps) - 1, operands[2]]
        numbers[step.out.number] = len(given) + len(steps)
        steps.append((_OTHER_NAMES.get(step.name, step.name), tuple(operands)))
    shapes = [layouts[n][0] for n in given]
    dtypes = {numbers[n]: layouts[n][1] for n in (*given, *group.outs) if layouts[n][1].itemsize == 1}
    kernel = backend.bind_chain(group.shape, shapes, steps, [numbers[n] for n in group.outs], dtypes)
    if kernel is None:
        return None
    kernel.text = "\n".join(f"    {step.name}" for step in group.steps)
    # The kernel takes arrays of these shapes only: its name is no op's, so that no later pass cuts the step in blocks.
    name = "chain_" + "_".join(step.name.strip("_") for step in group.steps)[:60]
    outs: Any = tuple(map(Slot, group.outs))
    return Step(name, kernel, tuple(map(Slot, given)), {}, outs[0] if len(outs) == 1 else outs, group.steps[0].line)
