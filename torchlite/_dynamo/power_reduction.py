"""Computes squares that a file writes as powers by a multiplication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._dispatch.dispatch_state import GLOBALS

from .program_ir import Layouts, Program, Slot, Step


def use_squares(program: Program, layouts: Layouts, table: Any) -> Program:
    """Replace `pow` of floats with the constant exponent 2 by `square`, a single product."""
    return replace(program, steps=[_square(step, program, layouts, table) or step for step in program.steps])


def _square(step: Step, program: Program, layouts: Layouts, table: Any) -> Step | None:
    if step.name != "pow" or step.kwargs or step.out.__class__ is not Slot or step.args[0].__class__ is not Slot:
        return None
    shape, dtype, _ = layouts.get(step.args[0].number, ((), None, False))
    same = dtype is not None and layouts.get(step.out.number, ())[:2] == (shape, dtype)
    if not same or dtype.char not in "fd" or constant_number(step.args[1], program) != 2:
        return None
    size = np.prod(shape, dtype=int)
    kernel = (table.large if size >= GLOBALS["LARGE"] else table).square
    return replace(step, name="square", kernel=kernel, args=step.args[:1])


def constant_number(value: Any, program: Program) -> float | None:
    """Return an argument of a step that is one constant number in each call, None for others."""
    if value.__class__ in (int, float):
        return float(value)
    raw = program.held.get(value.number) if value.__class__ is Slot else None
    return float(raw.reshape(())) if raw.__class__ is np.ndarray and raw.size == 1 and raw.ndim < 2 else None
