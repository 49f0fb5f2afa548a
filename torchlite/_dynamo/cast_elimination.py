"""Keeps quantized values in float32 where a program only casts them there and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._types.dtypes import float32, int8, int16, uint8, uint16

from .program_ir import Layouts, Program, Slot, Step, rename_slots

_NARROW = {dtype: np.iinfo(dtype.np) for dtype in (int8, uint8, int16, uint16)}


def eliminate_integer_casts(program: Program, layouts: Layouts, table: Any) -> Program:
    """Replace casts of float32 to a narrow integer dtype and back by `trunc`, if a clamp before it keeps the values in
    the dtype's range. Updates `layouts`.
    """
    makers = {step.out.number: step for step in program.steps if step.out.__class__ is Slot}
    readers: dict[int, list[Step]] = {}
    for step in program.steps:
        for number in step.uses():
            readers.setdefault(number, []).append(step)
    shown = program.shown()
    names: dict[int, Slot] = {}  # results of casts back, and what they are now
    steps = []
    for step in program.steps:
        if step.out.__class__ is Slot and step.out.number in names:
            continue
        if is_narrow_cast(step, makers, layouts):
            number = step.out.number
            back = readers.get(number, [])
            made = [one.out.number for one in back if is_cast_back(one)]
            if made and len(made) == len(back) and not {number, *made} & shown:
                names.update(dict.fromkeys(made, step.out))
                layouts[number] = layouts[made[0]]
                step = replace(step, name="trunc", kernel=table.trunc, args=step.args[:1])
        steps.append(rename_slots(step, names))
    return replace(program, steps=steps)


def is_cast_back(step: Step) -> bool:
    return step.name == "to" and step.args[1:] == (float32,) and not step.kwargs


def is_narrow_cast(step: Step, makers: dict[int, Step], layouts: Layouts) -> bool:
    """True for a cast from float32 to a narrow integer dtype of values that a clamp keeps in range."""
    if step.name != "to" or len(step.args) != 2 or step.kwargs or step.args[1] not in _NARROW:
        return False
    source, limits = step.args[0].number, _NARROW[step.args[1]]
    clamp = makers.get(source)
    return (
        layouts.get(source, (0, None))[1] == np.dtype("f4")
        and clamp is not None
        and clamp.name == "_clamp_scalars"
        and limits.min <= clamp.args[1] <= clamp.args[2] <= limits.max
    )
