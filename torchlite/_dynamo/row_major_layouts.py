"""Lets the arrays inside a captured program have the layout that kernels make, and finds the layouts by a trial run.

In eager mode each result has PyTorch's strides: a convolution of a channels-last input is channels last. Kernels of the
CPU compute row-major results and would copy them. Inside a program nobody sees strides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchlite._dispatch.backend import owner_of

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step, run_step
from .python_codegen import last_uses_by_step
from .step_purity import is_pure, only_mutates_args

# Steps whose arguments hold for certain strides only.
_BY_STRIDES = frozenset(("as_strided", "_with_strides", "_strided"))


def is_free_of_strides(program: Program) -> bool:
    """True if a program only computes and writes to its inputs, and no step depends on the strides of its arguments."""
    return all(
        step.kind == "read" or step.name not in _BY_STRIDES and (is_pure(step) or _writes_an_input(step, program))
        for step in program.steps
    )


def _writes_an_input(step: Step, program: Program) -> bool:
    """True for an in-place step whose first argument is an input, as a cache of keys is."""
    if not only_mutates_args(step) or step.name[-1] != "_" or step.out is not None or not step.args:
        return False
    return step.args[0].__class__ is Slot and step.args[0].number in program.inputs


def drop_stride_rules(program: Program) -> Program:
    """Replace kernels that lay out their results as PyTorch does by the kernels below them, but for outputs."""
    shown = program.shown()
    return replace(program, steps=[step if shown & {*step.makes()} else _plain(step) for step in program.steps])


def _plain(step: Step) -> Step:
    kernel = getattr(step.kernel, "without_rule", step.kernel)
    return step if kernel is step.kernel else replace(step, kernel=kernel)


def infer_layouts(program: Program, given: list[Any], layouts: Layouts, memory: dict[int, int], table: Any) -> bool:
    """Run a program with these inputs. Write the layouts of its arrays, and numbers of the memory that they lie in.

    Inputs that the program writes are copied first. Return False, with nothing written, if other arrays share memory
    with them than `memory` says.
    """
    written = AliasAnalysis(program, memory).written
    inputs = {
        n: raw.copy() if memory.get(n, (n,)) in written else raw for n, raw in zip(program.inputs, given, strict=True)
    }
    arrays = {**program.held, **program.constants, **inputs}
    found, places = dict[int, Any](), dict(memory)
    last = last_uses_by_step(program)
    fresh = 1 + max(memory.values(), default=0)
    for place, step in enumerate(program.steps):
        if step.kind != "kernel":
            continue
        made = run_step(step, arrays)
        made = {n: raw if raw.__class__ is table.array else table.as_array(raw) for n, raw in made.items()}
        owners = {id(owner_of(arrays[n])): places[n] for n in step.uses() if n in places}
        for number, raw in made.items():
            found[number] = raw.shape, raw.dtype, raw.flags.c_contiguous
            places[number] = owners.setdefault(id(owner_of(raw)), fresh)
            fresh = max(fresh, places[number] + 1)
            if places[number] in written and memory.get(number) not in written:
                return False
        arrays.update(made)
        for number in last.get(place, ()):
            arrays.pop(number, None)
    layouts.update(found)
    memory.update(places)
    return True
