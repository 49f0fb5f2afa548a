"""Computes the half-precision steps of a captured program in float32, on a device whose kernels do so one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._settings.equal_arrays import share_equal
from torchlite._types.dtypes import bfloat16, float16, float32

from .program_ir import Layouts, Program, Slot, Step
from .step_purity import is_pure

_HALF = (float16, bfloat16)
_HALF_DTYPES = frozenset(dtype.np for dtype in _HALF)
# Ops whose results depend on the dtype beyond rounding.
_OF_BITS = frozenset(("_view_dtype", "nextafter", "frexp", "ldexp", "view_as_real", "view_as_complex"))


def widen_half_precision(program: Program, layouts: Layouts, memory: dict[int, int], table: Any) -> Program:
    """Keep half-precision arrays in float32: inputs are cast at the beginning, and outputs at the end. Only a cast to
    half precision and back, which has no other use, rounds. Updates `layouts` and `memory`.
    """
    half = {number for number, (_, dtype, _) in layouts.items() if dtype in _HALF_DTYPES}
    used = half & program.used()
    if not used or any(not _is_widenable(step, half) for step in program.steps):
        return program
    free = 1 + max(layouts)
    steps: list[Step] = []
    inputs, outputs = list(program.inputs), list(program.outputs)
    for i, number in enumerate(inputs):
        if number in used:
            inputs[i] = free
            layouts[free], memory[free] = layouts[number], memory[number]
            steps.append(_cast(table, free, float32, number))
            free += 1
    computed = {n for step in program.steps if step.name != "to" for n in step.uses()}
    for step in program.steps:
        steps += _widen(step, half, computed, free, layouts, table)
        free = 1 + max(layouts)
    for i, number in enumerate(outputs):
        if number in half:
            outputs[i] = free
            layouts[free] = layouts[number]
            steps.append(_cast(table, number, _dtype_of(layouts[number][1]), free))
            free += 1
    for number in half:
        shape, _, contiguous = layouts[number]
        layouts[number] = shape, np.dtype("f4"), contiguous
    held = {n: share_equal(table.to(raw, float32)) if n in half else raw for n, raw in program.held.items()}
    constants = {n: table.to(raw, float32) if n in half else raw for n, raw in program.constants.items()}
    return replace(program, steps=steps, inputs=inputs, outputs=outputs, held=held, constants=constants)


def _is_widenable(step: Step, half: set[int]) -> bool:
    if not half & {*step.uses(), *step.makes()}:
        return True
    return is_pure(step) and step.name not in _OF_BITS


def _widen(step: Step, half: set[int], computed: set[int], free: int, layouts: Layouts, table: Any) -> list[Step]:
    """Return the steps in place of one. computed: slots that steps other than casts read."""
    if not half & {*step.uses(), *step.makes()}:
        return [step]
    if step.name == "to" and step.out.number in half:
        if step.args[0].number in half or step.out.number in computed:
            return [_cast(table, step.args[0].number, float32, step.out.number, step.line)]
        layouts[free] = layouts[step.out.number]
        return [replace(step, out=Slot(free)), _cast(table, free, float32, step.out.number, step.line)]
    if step.name == "to":
        return [step]
    kwargs = {name: _wide_dtype(value) for name, value in step.kwargs.items()}
    return [replace(step, args=tuple(map(_wide_dtype, step.args)), kwargs=kwargs)]


def _wide_dtype(value: Any) -> Any:
    return float32 if any(value is dtype for dtype in _HALF) else value


def _dtype_of(dtype: Any) -> Any:
    return float16 if dtype == float16.np else bfloat16


def _cast(table: Any, source: int, dtype: Any, made: int, line: str = "") -> Step:
    return Step("to", table.to, (Slot(source), dtype), {}, Slot(made), line)
