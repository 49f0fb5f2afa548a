"""Simplification passes over programs: dead code, common subexpressions, views, constants, matmul epilogues."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .fuse_conv_bn_act import clamp_range_of
from .program_ir import Layouts, Program, Slot, Step, comparison_key, substitute_arrays
from .side_effects import is_pure


def eliminate_dead_code(program: Program) -> Program:
    """Remove pure steps with unused results."""
    wanted, kept = set(program.outputs), []
    for step in reversed(program.steps):
        if not is_pure(step) or any(number in wanted for number in step.makes()):
            kept.append(step)
            wanted.update(step.uses())
    constants = {number: raw for number, raw in program.constants.items() if number in wanted}
    held = {number: raw for number, raw in program.held.items() if number in wanted}
    return replace(program, steps=kept[::-1], constants=constants, held=held)


def eliminate_common_subexpressions(program: Program, place: dict[int, int]) -> Program:
    """Remove steps that repeat an earlier computation, if the results are not written and the later one does not
    escape. A write or a random draw ends the search.
    """
    memory, shown = AliasAnalysis(program, place), program.shown()
    known: dict[Any, Step] = {}
    names: dict[int, Slot] = {}
    kept: list[Step] = []
    for step in program.steps:
        step = rename_slots(step, names)
        if not is_pure(step):
            known.clear()
        elif step.out is not None:
            key = id(step.kernel), comparison_key(step.args), comparison_key(step.kwargs)
            first = known.setdefault(key, step)
            if first is not step and _is_replaceable_by(first, step, memory, shown):
                names.update(zip(step.makes(), map(Slot, first.makes()), strict=True))
                continue
        kept.append(step)
    return replace(program, steps=kept)


def _is_replaceable_by(first: Step, step: Step, memory: AliasAnalysis, shown: set[int]) -> bool:
    """True if an earlier step's results can replace those of a step."""
    if memory.is_view(step):
        return memory.is_view(first) and not any(n in shown for n in step.makes())
    fresh = all(memory.of(n) not in memory.written for n in first.makes())
    return fresh and all(map(memory.is_plain, step.makes()))


def rename_slots(step: Step, names: dict[int, Slot]) -> Step:
    """Return the step with renamed input slots."""
    if not names or not any(n in names for n in step.uses()):
        return step
    args, kwargs, grads = (
        _rename_in_value(value, names) for value in (step.args, tuple(step.kwargs.items()), step.grads)
    )
    return replace(step, args=args, kwargs=dict(kwargs), grads=grads)


def _rename_in_value(value: Any, names: dict[int, Slot]) -> Any:
    cls = value.__class__
    if cls is Slot:
        return names.get(value.number, value)
    if cls is tuple or cls is list:
        return cls([_rename_in_value(item, names) for item in value])
    if cls is slice:
        return slice(*[_rename_in_value(item, names) for item in (value.start, value.stop, value.step)])
    return value


# Views that can be composed with other reshapes.
_RESHAPES = frozenset(("reshape", "_view", "view", "flatten", "unflatten", "squeeze", "unsqueeze"))


def simplify_views(program: Program, layouts: Layouts, place: dict[int, int], reshape: Any) -> Program:
    """Collapse chains of reshapes and of permutations into one view. Remove views that change nothing."""
    memory, shown = AliasAnalysis(program, place), program.shown()
    names: dict[int, Slot] = {}
    makers: dict[int, Step] = {}
    kept: list[Step] = []
    for step in program.steps:
        step = rename_slots(step, names)
        if step.out.__class__ is Slot and is_pure(step) and memory.is_view(step) and step.args[0].__class__ is Slot:
            number = step.out.number
            before = makers.get(step.args[0].number)
            if step.name in _RESHAPES and _is_contiguous_view(step, layouts):
                if before is not None and before.name in _RESHAPES and _is_contiguous_view(before, layouts):
                    step = replace(step, name="reshape", kernel=reshape, args=(before.args[0], layouts[number][0]))
                    step.kwargs = {}
                given = step.args[0].number
                # A dimension of size one may have another stride, visible in results.
                if layouts[given] == layouts[number] and number not in shown and 1 not in layouts[given][0]:
                    names[number] = Slot(given)
                    continue
            elif step.name == "permute" and before is not None and before.name == "permute":
                order = [before.args[1][d] for d in step.args[1]]
                step = replace(step, args=(before.args[0], tuple(order)))
            makers[number] = step
        kept.append(step)
    return replace(program, steps=kept)


def _is_contiguous_view(step: Step, layouts: Layouts) -> bool:
    """True if a view has all elements of a contiguous array in order."""
    given, made = layouts.get(step.args[0].number), layouts.get(step.out.number)
    if given is None or made is None or not given[2] or not made[2]:
        return False
    return given[1] == made[1] and math.prod(given[0]) == math.prod(made[0])


_MAX_FOLDED_BYTES = 1 << 16  # maximum size of a constant


def fold_constants(program: Program, place: dict[int, int], table: Any) -> Program:
    """Evaluate steps that depend on constants only, if no step writes the result. The value is stored."""
    memory = AliasAnalysis(program, place)
    held = dict(program.held)
    constants = dict(program.constants)
    for number in program.constants:
        uses = [step for step in program.steps if number in step.uses()]
        if (
            number not in program.outputs
            and memory.of(number) not in memory.written
            and not any(memory.is_view(step) or not is_pure(step) for step in uses)
        ):
            held[number] = constants.pop(number)
    steps = []
    for step in program.steps:
        found = _fold_step(step, memory, held, table) if is_pure(step) and step.out.__class__ is Slot else None
        if found is None:
            steps.append(step)
        else:
            held[step.out.number] = found
    return replace(program, steps=steps, constants=constants, held=held)


def _fold_step(step: Step, memory: AliasAnalysis, held: dict[int, Any], table: Any) -> Any:
    """Return a step's value from constants, None if it reads other arrays or its memory escapes."""
    if not memory.is_plain(step.out.number) or any(n not in held for n in step.uses()):
        return None
    values = {n: Slot(n) for n in step.uses()}
    arrays = {slot: held[n] for n, slot in values.items()}
    found = step.kernel(
        *substitute_arrays(step.args, arrays), **dict(substitute_arrays(tuple(step.kwargs.items()), arrays))
    )
    found = found if found.__class__ is table.array else table.as_array(found)
    return found if found.size <= _MAX_FOLDED_BYTES else None


_MATMUL_OPS = ("linear", "addmm", "mm", "matmul", "convolution")


def fuse_matmul_epilogues(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Fuse a float32 matrix product with a following bias add and elementwise op, where nothing else reads the product
    and the device has such a kernel.
    """
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    products: dict[int, Step] = {}  # by result slot, since the last write
    steps: list[Step] = []
    done: set[int] = set()
    for step in program.steps:
        if not is_pure(step):
            products.clear()
        before = next((products[n] for n in step.uses() if n in products), None)
        if before is not None:
            found = _fuse_addmm(before, step, layouts, table) or _fuse_activation(before, step, table)
            if found is not None:
                done.add(id(before))
                step = found
        steps.append(step)
        if step.name in _MATMUL_OPS and step.out.__class__ is Slot and hasattr(table, step.name):
            number = step.out.number
            if count[number] == 1 and memory.is_plain(number):
                products[number] = step
    return replace(program, steps=[step for step in steps if id(step) not in done])


def _fuse_addmm(product: Step, step: Step, layouts: Layouts, table: Any) -> Step | None:
    """Return a matrix product and the addition of a vector as one step."""
    if step.name != "add" or len(step.args) != 2 or step.kwargs or product.name not in ("mm", "matmul"):
        return None
    others = [value for value in step.args if value != product.out]
    slots = (*product.args, *others, product.out, step.out)
    if len(others) != 1 or any(slot.__class__ is not Slot or slot.number not in layouts for slot in slots):
        return None
    a, b, added, made, total = (layouts[slot.number] for slot in slots)
    if len(a[0]) != 2 or len(b[0]) != 2 or len(added[0]) != 1 or made[:2] != total[:2] or made[1].char != "f":
        return None
    if any(layouts[slot.number][1] != made[1] for slot in slots):
        return None
    return replace(step, name="addmm", kernel=table.addmm, args=(others[0], *product.args))


_LIMITING: dict[Any, str] = {(0.0, math.inf): "relu", (0.0, 6.0): "relu6"}


def _fuse_activation(product: Step, step: Step, table: Any) -> Step | None:
    """Return a matrix product and an elementwise op of its result as one step."""
    if step.args[:1] != (product.out,) or step.kwargs or product.kwargs or step.out.__class__ is not Slot:
        return None
    name = _LIMITING.get(clamp_range_of(step)) or (step.name if len(step.args) == 1 else "")
    kernel = table.backend.fused_matmul(product.name, name) if name else None
    if kernel is None:
        return None
    return replace(step, name=product.name, kernel=kernel, args=product.args)
