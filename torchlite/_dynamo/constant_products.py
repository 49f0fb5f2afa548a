"""Binds products with constant weights to kernels that have the weights packed and add the bias behind the product."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .program_ir import Layouts, Program, Slot, Step

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend

_F32 = np.dtype(np.float32)


def bind_constant_products(program: Program, layouts: Layouts, backend: AnyBackend) -> Program:
    """Replace `linear`, and `matmul` and `mm` with a constant on the right, where the backend has a kernel. Adding a
    constant vector to the result becomes the kernel's bias.
    """
    count = Counter(n for step in program.steps for n in step.uses())
    count.update(program.outputs)
    readers = {n: step for step in program.steps for n in step.uses()}
    gone: set[int] = set()
    steps: list[Step] = []
    for step in program.steps:
        parts = _parts_of(step, program.held)
        if id(step) in gone or parts is None or parts[0].number not in layouts:
            steps.append(step)
            continue
        x, weight, bias = parts
        reader = readers.get(step.out.number)
        added = None
        if bias is None and reader is not None and count[step.out.number] == 1:
            added = _added_vector(reader, step.out, program.held, weight.shape[0])
        varying = backend.varying(*layouts[x.number][:2])
        kernel = backend.bind_kernel("linear", (varying, weight, bias if added is None else added))
        if kernel is None:
            steps.append(step)
            continue
        if added is not None and reader is not None:
            gone.add(id(reader))
        out = step.out if added is None or reader is None else reader.out
        steps.append(replace(step, name="_constant_product", kernel=kernel, args=(x,), out=out))
    return replace(program, steps=[step for step in steps if id(step) not in gone])


def _parts_of(step: Step, held: dict[int, Any]) -> tuple[Slot, np.ndarray, np.ndarray | None] | None:
    """Return what a product multiplies: a slot, weights (results, terms) and a bias. None for another step."""
    slots = [value for value in step.args if value is not None]
    if step.kind != "kernel" or step.kwargs or step.out.__class__ is not Slot or len(slots) < 2:
        return None
    if any(value.__class__ is not Slot for value in slots) or slots[0].number in held:
        return None
    constants: list[Any] = [held.get(slot.number) for slot in slots[1:]]
    if any(raw is None or raw.dtype != _F32 for raw in constants) or constants[0].ndim != 2:
        return None
    if step.name == "linear":
        return slots[0], constants[0], (constants[1:] or [None])[0]
    if step.name in ("matmul", "mm") and len(slots) == 2:
        return slots[0], constants[0].T, None
    return None


def _added_vector(step: Step, product: Slot, held: dict[int, Any], size: int) -> np.ndarray | None:
    """Return the constant vector of this size that a step adds to a product; None for another step."""
    if step.name != "add" or step.kind != "kernel" or step.kwargs or step.out.__class__ is not Slot:
        return None
    others = [value for value in step.args if value != product]
    if len(step.args) != 2 or len(others) != 1 or others[0].__class__ is not Slot:
        return None
    found = held.get(others[0].number)
    return found if found is not None and found.shape == (size,) and found.dtype == _F32 else None
