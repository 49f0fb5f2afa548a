"""Matmul epilogue fusion: adds bias and activation to the kernel of a matrix product."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .fuse_conv_bn_act import clamp_range_of
from .program_ir import Layouts, Program, Slot, Step
from .step_purity import is_pure

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
