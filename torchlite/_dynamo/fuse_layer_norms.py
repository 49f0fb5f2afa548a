"""Makes a layer norm or RMS norm that is written as single ops one step of a program without gradients."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._dispatch.dispatch_state import GLOBALS

from .alias_analysis import AliasAnalysis
from .dead_code_elimination import eliminate_dead_code
from .power_reduction import constant_number
from .program_ir import Layouts, Program, Slot, Step

_FLOATS = ("f", "d")


def fuse_layer_norms(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Replace `(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps)` over the last dimension, and the constants that it
    is multiplied with and that are added, by `_layer_norm`; `x / sqrt(mean(x ** 2) + eps)` or `x * rsqrt(...)` by
    `_rms_norm`. Steps that nothing else reads are removed.
    """
    found = _Matcher(program, layouts, AliasAnalysis(program, place), table).run()
    # Later passes know constants that no step reads any more: the levels of dequantized ones.
    return program if found is None else replace(eliminate_dead_code(found), held=program.held)


class _Matcher:
    def __init__(self, program: Program, layouts: Layouts, memory: AliasAnalysis, table: Any) -> None:
        self.program, self.layouts, self.memory, self.table = program, layouts, memory, table
        self.makers = {step.out.number: step for step in program.steps if step.out.__class__ is Slot}
        self.count = Counter(n for step in program.steps for n in step.uses())
        self.count.update(program.outputs)
        self.readers: dict[int, tuple[int, Step]] = {}
        for at, step in enumerate(program.steps):
            self.readers.update(dict.fromkeys(step.uses(), (at, step)))

    def run(self) -> Program | None:
        """Return the program with layer norms, None if there are none."""
        steps: list[Step] = list(self.program.steps)
        for at, step in enumerate(self.program.steps):
            found = self._match(step)
            if found is None:
                continue
            name, x, eps = found
            last, weight = self._affine((at, step), "mul")
            args: tuple = (x, weight, 1, eps)
            if name == "_layer_norm":
                last, bias = self._affine(last, "add")
                args = (x, weight, bias, 1, eps)
            size = np.prod(self.layouts[x.number][0], dtype=int)
            kernel = getattr(self.table.large if size >= GLOBALS["LARGE"] else self.table, name)
            out = (last[1].out, *[None] * (len(args) - 3))
            steps[last[0]] = replace(last[1], name=name, kernel=kernel, args=args, kwargs={}, out=out)
        return replace(self.program, steps=steps) if steps != self.program.steps else None

    def _match(self, step: Step) -> tuple[str, Slot, float] | None:
        """Return the op that a step is the end of, its argument, and the number that is added to the variance."""
        found = self._match_layer_norm(step)
        if found is not None:
            return "_layer_norm", *found
        found = self._match_rms_norm(step)
        return None if found is None else ("_rms_norm", *found)

    def _match_rms_norm(self, step: Step) -> tuple[Slot, float] | None:
        product = self._operands(step, "mul")
        pairs = [(*self._operands(step, "div"), "sqrt"), (*product, "rsqrt"), (*product[::-1], "rsqrt")]
        for x, factor, name in pairs:
            eps, square = self._mean_and_term(self._made_by(factor, name))
            if square is not None and self._is_square(square, x) and self._is_known(x, step.out):
                return x, eps
        return None

    def _mean_and_term(self, root: Step | None) -> tuple[Any, Any]:
        """Return the number that is added to a mean before its root is taken, and that of which it is the mean."""
        terms = self._operands(self._made_by(root.args[0], "add"), "add") if root is not None else (None, None)
        for variance, added in (terms, terms[::-1]):
            eps, square = constant_number(added, self.program), self._mean_of(variance)
            if eps is not None and square is not None:
                return eps, square
        return None, None

    def _match_layer_norm(self, step: Step) -> tuple[Slot, float] | None:
        difference, deviation = self._operands(step, "div")
        eps, square = self._mean_and_term(self._made_by(deviation, "sqrt"))
        if square is not None and self._is_square(square, difference):
            x, mean = self._operands(self._made_by(difference, "sub"), "sub")
            if x is not None and self._mean_of(mean) == x and self._is_known(x, difference, step.out):
                return x, eps
        return None

    def _is_known(self, *slots: Slot) -> bool:
        """True if arrays have one shape and one dtype of floats, and nothing writes them."""
        if any(slot.number not in self.layouts for slot in slots):
            return False
        kinds = {(self.layouts[slot.number][0], self.layouts[slot.number][1]) for slot in slots}
        written = any(self.memory.of(slot.number) in self.memory.written for slot in slots)
        return len(kinds) == 1 and not written and next(iter(kinds))[1].char in _FLOATS

    def _made_by(self, slot: Any, name: str) -> Step | None:
        step = self.makers.get(slot.number) if slot.__class__ is Slot else None
        return step if step is not None and step.name == name and step.kind == "kernel" else None

    def _operands(self, step: Step | None, name: str) -> tuple[Any, Any]:
        """Return the operands of a step with two; None for another step."""
        if step is None or step.name != name or step.kwargs or len(step.args) != 2 or step.out.__class__ is not Slot:
            return None, None
        return step.args if step.args[0].__class__ is Slot or step.args[1].__class__ is Slot else (None, None)

    def _mean_of(self, slot: Any) -> Slot | None:
        """Return that of which an array is the mean over the last dimension, which stays as one of size 1."""
        step = self._made_by(slot, "mean")
        if step is None or len(step.args) != 3 or step.kwargs not in ({}, {"dtype": None}):
            return None
        x, dims, keep = step.args
        dims = (dims,) if dims.__class__ is int else dims
        if keep is not True or x.__class__ is not Slot or x.number not in self.layouts or len(dims or ()) != 1:
            return None
        rank = len(self.layouts[x.number][0])
        return x if rank and dims[0] in (-1, rank - 1) else None

    def _is_square(self, slot: Slot, of: Any) -> bool:
        """True if an array is the square of another one."""
        step = self.makers.get(slot.number)
        if step is None or step.kwargs or of.__class__ is not Slot or not step.args or step.args[0] != of:
            return False
        return step.name == "square" or step.name == "mul" and step.args == (of, of)

    def _affine(self, last: tuple[int, Step], name: str) -> tuple[tuple[int, Step], Slot | None]:
        """Return the step that alone reads a step's result and combines it with a row of constants, and the row. Return
        the step itself and None if there is none.
        """
        number = last[1].out.number
        found = self.readers.get(number)
        if found is None or self.count[number] != 1 or not self.memory.is_plain(number):
            return last, None
        for value, row in (pair := self._operands(found[1], name), pair[::-1]):
            raw = self.program.held.get(row.number) if row.__class__ is Slot else None
            if value == last[1].out and raw is not None and self._is_known(value, found[1].out):
                if tuple(raw.shape) == self.layouts[number][0][-1:] and raw.dtype == self.layouts[number][1]:
                    return found, row
        return last, None
