"""Functionalization pass: replaces in-place writes to private arrays by ops that return new arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from torchlite._dispatch.op_record import ALWAYS_BOOL, POINTWISE, RANDOM, REGISTRY

from .alias_analysis import AliasAnalysis
from .fusion_groups import is_broadcastable
from .program_ir import Layouts, Program, Slot, Step, rename_slots
from .step_purity import is_pure


def functionalize(
    program: Program, layouts: Layouts, place: dict[int, int], table: Any
) -> tuple[Program, Layouts, dict[int, int]]:
    """Replace `relu_(x)`, `x += y` and similar by out-of-place ops whose result takes x's place, if x's memory is
    private to the program. Remove copies that this makes redundant. Updates `layouts` and `place`.
    """
    writes = _WriteAnalysis(program, layouts, place, table)
    layouts, place = dict(layouts), dict(place)
    free = 1 + max([*layouts, *writes.slots], default=0)
    apart = 1 + max(place.values(), default=0)
    names: dict[int, Slot] = {}
    steps: list[Step] = []
    for at, step in enumerate(program.steps):
        here = rename_slots(step, names)
        if at in writes.copies:
            names[step.args[0].number] = here.args[1]
            continue
        if at in writes.elementwise:
            target, name, new_slot = step.args[0].number, step.name[:-1], Slot(free)
            layouts[free], place[free], names[target] = layouts[target], apart, new_slot
            free, apart = free + 1, apart + 1
            here = replace(here, name=name, kernel=getattr(table, name), out=new_slot)
        steps.append(here)
    outputs = [names.get(n, Slot(n)).number for n in program.outputs]
    return eliminate_clones(replace(program, steps=steps, outputs=outputs), layouts, place), layouts, place


class _WriteAnalysis:
    """Analysis of removable steps, by position: `copies` to slots that can be replaced, and `elementwise` in-place
    steps with an out-of-place twin.
    """

    def __init__(self, program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> None:
        self.layouts = layouts
        memory = AliasAnalysis(program, place)
        steps = program.steps
        self.slots = {n for step in steps for n in (*step.uses(), *step.makes())} | {*program.inputs, *program.outputs}
        members = Counter(map(memory.of, self.slots))
        others = {*program.inputs, *program.constants, *program.held}
        others |= {n for step in steps if step.kind != "kernel" or step.name == "_cow_clone" for n in step.uses()}
        own = {n for step in steps if is_pure(step) for n in step.makes()} - others
        self.own = {n for n in own if members[memory.of(n)] == 1 and n in layouts and layouts[n][2] and layouts[n][0]}
        self.copies: set[int] = set()
        self.elementwise: set[int] = set()
        outputs = set(program.outputs)
        read, stays = set(outputs), set[int]()  # slots read later, and slots written later
        for at, step in reversed(list(enumerate(steps))):
            target = self._find_private_write_target(step)
            if target is not None and self._is_copy(step, target):
                source = step.args[1].number
                if source not in read or not {target, source} & stays and not {target, source} <= outputs:
                    self.copies.add(at)  # both names denote one array from here on
                    stays.update({source} if target in stays else ())
                    outputs.update({source} if target in outputs else ())
            elif target is not None and self._is_elementwise(step, target, table):
                self.elementwise.add(at)
            read.update(step.uses())
            if not is_pure(step) and at not in self.copies and at not in self.elementwise:
                stays.update(step.uses())

    def _find_private_write_target(self, step: Step) -> int | None:
        """Return the array that a step writes to, if it only writes and the array is private."""
        if is_pure(step) or step.out is not None or step.kwargs or not step.args or step.args[0].__class__ is not Slot:
            return None
        return step.args[0].number if step.args[0].number in self.own else None

    def _is_copy(self, step: Step, target: int) -> bool:
        if step.name != "copy_into" or step.args[1].__class__ is not Slot:
            return False
        source = step.args[1].number
        return source in self.own and source != target and self.layouts[source] == self.layouts[target]

    def _is_elementwise(self, step: Step, target: int, table: Any) -> bool:
        """True if a step has an out-of-place twin with equal elements and layout."""
        name = step.name[:-1]
        op = REGISTRY.get(name)
        if step.name[-1] != "_" or op is None or not op.tags & POINTWISE or op.tags & RANDOM:
            return False
        shape, kind = self.layouts[target][:2]
        if kind.char not in "fd" or op.promote == ALWAYS_BOOL or not hasattr(table, name):
            return False
        given = [self.layouts.get(n) for n in step.uses()]
        return all(value.__class__ in (int, float, Slot) for value in step.args) and all(
            g is not None and g[1] == kind and is_broadcastable(g[0], shape) for g in given
        )


def eliminate_clones(program: Program, layouts: Layouts, place: dict[int, int]) -> Program:
    """Replace reads of a copy by reads of the original, if neither is written or escapes."""
    memory = AliasAnalysis(program, place)
    names: dict[int, Slot] = {}
    steps: list[Step] = []
    for step in program.steps:
        step = rename_slots(step, names)
        if step.name == "clone" and step.out.__class__ is Slot and step.args[0].__class__ is Slot and not step.kwargs:
            source, made = step.args[0].number, step.out.number
            known = source in layouts and layouts[source] == layouts.get(made) and layouts[source][2]
            if known and memory.is_plain(source) and memory.is_plain(made) and len(step.args) == 1:
                names[made] = Slot(source)
                continue
        steps.append(step)
    return replace(program, steps=steps)
