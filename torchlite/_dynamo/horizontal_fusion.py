"""Horizontal fusion pass: independent neighbouring steps become one kernel call where the backend supports it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .program_ir import Layouts, Program, Slot, Step
from .step_purity import is_pure

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend

# View ops that may be deferred past the fused step.
_VIEW_OPS = frozenset(("reshape", "_view", "view", "permute", "transpose", "unbind", "expand", "unsqueeze", "squeeze"))


def fuse_horizontally(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Fuse neighbouring independent steps, with only views between them. Examples: the gradients of a linear layer,
    several layers of one input.
    """
    steps: list[Step] = []
    group: list[Step] = []  # and the views between them
    for step in program.steps:
        joins = _is_fusible(step, layouts, backend)
        defined = {n for one in group for n in one.makes()}
        if group and not joins and step.name in _VIEW_OPS and is_pure(step):
            group.append(step)
            continue
        if not joins or not defined.isdisjoint(step.uses()):
            steps += _fuse_group(group, layouts, backend)
            group = []
        (group if joins else steps).append(step)
    return replace(program, steps=steps + _fuse_group(group, layouts, backend))


def _is_fusible(step: Step, layouts: Layouts, backend: AnyBackend) -> bool:
    if step.kind != "kernel" or step.kwargs or step.out.__class__ is not Slot or not step.args:
        return False
    if any(value is not None and (value.__class__ is not Slot or value.number not in layouts) for value in step.args):
        return False
    return bool(backend.count_multiplications(step.name, _step_layouts(step, layouts)))


def _step_layouts(step: Step, layouts: Layouts) -> list:
    return [layouts[n] for n in step.uses()]


def _fuse_group(group: list[Step], layouts: Layouts, backend: AnyBackend) -> list[Step]:
    """Return the fused step of a group and its deferred views."""
    members = [step for step in group if step.name not in _VIEW_OPS]
    kernel = (
        backend.grouped_gemm([(step.name, _step_layouts(step, layouts)) for step in members]) if members[1:] else None
    )
    if kernel is None:
        return group
    name = "_".join(step.name.strip("_") for step in members)[:60]
    given = tuple(Slot(n) for step in members for n in step.uses())
    one = Step(name, kernel, given, {}, tuple(step.out for step in members), members[0].line)
    return [one, *(step for step in group if step.name in _VIEW_OPS)]
