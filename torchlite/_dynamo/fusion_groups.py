"""Forms fusion groups: pointwise steps over one shape, with an optional reduction at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from torchlite._dispatch.op_record import POINTWISE, REGISTRY, VIEW

from .program_ir import Layouts, Program, Slot, Step
from .step_purity import is_pure

# Row-wise reductions of the first argument; the second argument names the dimensions.
REDUCTIONS = frozenset(("sum", "mean", "amax", "amin", "_softmax", "_log_softmax"))
MAX_GROUP_SIZE = 32  # maximum number of steps


@dataclass
class FusionGroup:
    """Steps that can run consecutively at the position of the last one.

    shape: of all results except that of `ending`, a reduction over the last `reduced` dimensions of one result. given:
    input slots, broadcastable to the shape. outs: slots that later steps read.
    """

    shape: tuple
    steps: list[Step] = field(default_factory=list)
    ending: Step | None = None
    reduced: int = 0
    given: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)

    def all(self) -> list[Step]:
        """Return the steps including the ending."""
        return self.steps if self.ending is None else [*self.steps, self.ending]

    def made(self) -> set[int]:
        """Return the slots that the steps write."""
        return {number for step in self.all() for number in step.makes()}


def form_fusion_groups(
    program: Program,
    layouts: Layouts,
    least: int,
    serves: Callable[[Step], bool] | None = None,
    shape_of: Callable[[Step, Layouts], tuple | None] | None = None,
) -> list[Step | FusionGroup]:
    """Group pointwise steps of shapes with at least `least` elements, of those that `serves` accepts. Return steps and
    groups in a valid order. shape_of: in place of `pointwise_shape`.

    A group runs where its first result is needed. Until then, steps that share inputs or results with it join. A write
    closes all groups, so no read moves past it.
    """
    found: list[Step | FusionGroup] = []
    waiting: list[FusionGroup] = []
    shape_of = shape_of or pointwise_shape
    for step in program.steps:
        uses = set(step.uses())
        shape = shape_of(step, layouts)
        large = shape is not None and math.prod(shape) >= least and (serves is None or serves(step))
        near = [g for g in waiting if g.shape == shape and g.made() & uses] if large else []
        for group in [g for g in waiting if g not in near and (not is_pure(step) or g.made() & uses)]:
            waiting.remove(group)
            found.append(_append_reduction(group, step, layouts))
        if found and found[-1].__class__ is FusionGroup and found[-1].ending is step:
            continue
        if not large:
            found.append(step)
            continue
        near = near or [g for g in waiting if g.shape == shape and _reads_in_full(g, uses, layouts)][:1]
        for other in near[1:]:
            waiting.remove(other)
            near[0].steps += other.steps
        del near[1:]
        if near and len(near[0].steps) >= MAX_GROUP_SIZE:
            waiting.remove(near[0])
            found.append(near.pop(0))
        if not near:
            near = [FusionGroup(shape)]  # type: ignore[arg-type]
            waiting += near
        near[0].steps.append(step)
    return _finalize_groups([*found, *waiting], program)


def _reads_in_full(group: FusionGroup, uses: set[int], layouts: Layouts) -> bool:
    """True if a group reads one of the slots without broadcasting."""
    return any(n in uses and layouts[n][0] == group.shape for step in group.steps for n in step.uses())


def _finalize_groups(found: list[Step | FusionGroup], program: Program) -> list[Step | FusionGroup]:
    """Return the groups with their inputs and outputs; a group of one step becomes that step."""
    later = set(program.outputs)
    for place in reversed(range(len(found))):
        one = found[place]
        if isinstance(one, FusionGroup):
            defined = one.made()
            steps = one.all()
            one.given = list(dict.fromkeys(n for step in steps for n in step.uses() if n not in defined))
            one.outs = [n for step in steps for n in step.makes() if n in later]
            later.update(one.given)
            if len(steps) == 1:
                found[place] = steps[0]
        else:
            later.update(one.uses())
    return found


def pointwise_shape(step: Step, layouts: Layouts) -> tuple | None:
    """Return the shape of a step that can join a group, else None."""
    op = REGISTRY.get(step.name)
    if op is None or not op.tags & POINTWISE or op.tags & VIEW or not is_pure(step) or step.out.__class__ is not Slot:
        return None
    if any(value.__class__ in (list, tuple, slice) for value in (*step.args, *step.kwargs.values())):
        return None
    made, used = layouts.get(step.out.number), [layouts.get(n) for n in step.uses()]
    if made is None or not made[2] or not used or any(u is None or not u[2] for u in used):
        return None
    return made[0] if all(is_broadcastable(u[0], made[0]) for u in used if u is not None) else None


def is_broadcastable(shape: tuple, to: tuple) -> bool:
    """True if a shape broadcasts to another."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def _append_reduction(group: FusionGroup, step: Step, layouts: Layouts) -> FusionGroup:
    """Append a row reduction of one of the group's results, if the step is one."""
    reduced = _count_reduced_dims(group, step, layouts)
    if reduced:
        group.ending, group.reduced = step, reduced
    return group


def _count_reduced_dims(group: FusionGroup, step: Step, layouts: Layouts) -> int:
    """Return the number of trailing dimensions that a step reduces, 0 if the step does not qualify."""
    if step.name not in REDUCTIONS or len(step.args) < 2 or step.args[0].__class__ is not Slot:
        return 0
    if list(step.uses()) != [step.args[0].number] or step.args[0].number not in group.made():
        return 0
    if step.out.__class__ is not Slot or not layouts.get(step.out.number, (0, 0, False))[2]:
        return 0
    dims, rank = step.args[1], len(group.shape)
    dims = dims if dims.__class__ is tuple else (dims,)
    if not dims or any(d.__class__ is not int for d in dims):
        return 0
    last = sorted(d % rank for d in dims)
    return len(last) if last == list(range(rank - len(last), rank)) and len(last) < rank else 0
