"""Binds kernels to their constant arguments and to the shapes of the others, where a backend can."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .program_ir import Layouts, Program, Slot, Step, comparison_key

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend


def bind_kernels(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Replace steps by functions of their arrays that are no constants. Equal calls, as those of the steps of a
    recurrent layer, share a function and what it keeps of the constants.
    """
    bound: dict[Any, Any] = {}
    steps = [_bind(step, program.held, layouts, backend, bound) for step in program.steps]
    steps = _join_neighbours(steps)
    used = {number for step in steps for number in step.uses()} | set(program.outputs)
    held = {number: raw for number, raw in program.held.items() if number in used}
    return replace(program, steps=steps, held=held)


def _join_neighbours(steps: list[Step]) -> list[Step]:
    """Make one step of neighbours that are independent, where the first one's kernel can run beside the second one's:
    the directions of a recurrent layer.
    """
    made: list[Step] = []
    for step in steps:
        before = made[-1] if made else None
        beside = None if before is None else getattr(before.kernel, "beside", None)
        if beside is not None and before is not None and not {*before.makes()} & {*step.uses()}:
            kernel = beside(step.kernel)
            if kernel is not None:
                name, args = f"{before.name}_{step.name.strip('_')}", (*before.args, *step.args)
                made[-1] = replace(before, name=name, kernel=kernel, args=args, out=(*before.out, *step.out))
                continue
        made.append(step)
    return made


def _argument(value: Any, held: dict[int, Any], layouts: Layouts, backend: AnyBackend) -> Any:
    """Return a constant, or the shape and dtype of an array that each call gets."""
    if value.__class__ is not Slot:
        return value
    return held[value.number] if value.number in held else backend.varying(*layouts[value.number][:2])


def _bind(step: Step, held: dict[int, Any], layouts: Layouts, backend: AnyBackend, bound: dict) -> Step:
    if step.kind != "kernel" or step.kwargs or not any(n in held for n in step.uses()):
        return step
    varying = [v for v in step.args if v.__class__ is Slot and v.number not in held]
    if any(slot.number not in layouts for slot in varying):
        return step
    args = tuple([_argument(value, held, layouts, backend) for value in step.args])
    key = step.name, comparison_key(args)
    if key not in bound:
        bound[key] = backend.bind_kernel(step.name, args)
    found = bound[key]
    return step if found is None else replace(step, kernel=found, args=tuple(varying))
