"""Lets the arrays inside a captured program have the layout that kernels make, and finds the layouts by a trial run.

In eager mode each result has PyTorch's strides: a convolution of a channels-last input is channels last. Kernels of the
CPU compute row-major results and would copy them. Inside a program nobody sees strides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchlite._dispatch.backend import owner_of

from .program_ir import Layouts, Program, Step, run_step
from .python_codegen import last_uses_by_step
from .step_purity import is_pure

# Steps whose arguments hold for certain strides only.
_BY_STRIDES = frozenset(("as_strided", "_with_strides", "_strided"))


def is_free_of_strides(program: Program) -> bool:
    """True if a program only computes, and none of its steps depends on the strides of its arguments."""
    return all(step.kind == "read" or is_pure(step) and step.name not in _BY_STRIDES for step in program.steps)


def drop_stride_rules(program: Program) -> Program:
    """Replace kernels that lay out their results as PyTorch does by the kernels below them, but for outputs."""
    shown = program.shown()
    return replace(program, steps=[step if shown & {*step.makes()} else _plain(step) for step in program.steps])


def _plain(step: Step) -> Step:
    kernel = getattr(step.kernel, "without_rule", step.kernel)
    return step if kernel is step.kernel else replace(step, kernel=kernel)


def infer_layouts(program: Program, given: list[Any], layouts: Layouts, memory: dict[int, int], table: Any) -> None:
    """Run a program with these inputs. Write the layouts of its arrays, and numbers of the memory that they lie in."""
    arrays = {**program.held, **program.constants, **dict(zip(program.inputs, given, strict=True))}
    last = last_uses_by_step(program)
    fresh = 1 + max(memory.values(), default=0)
    for place, step in enumerate(program.steps):
        if step.kind != "kernel":
            continue
        made = run_step(step, arrays)
        made = {n: raw if raw.__class__ is table.array else table.as_array(raw) for n, raw in made.items()}
        owners = {id(owner_of(arrays[n])): memory[n] for n in step.uses() if n in memory}
        for number, raw in made.items():
            layouts[number] = raw.shape, raw.dtype, raw.flags.c_contiguous
            memory[number] = owners.setdefault(id(owner_of(raw)), fresh)
            fresh = max(fresh, memory[number] + 1)
        arrays.update(made)
        for number in last.get(place, ()):
            arrays.pop(number, None)
