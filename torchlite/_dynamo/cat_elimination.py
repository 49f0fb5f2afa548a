"""Pass that removes `cat` and `stack`: kernels write directly into slices of the concatenated array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend

_RESHAPES = frozenset(("reshape", "_view", "view"))
_PERMUTATIONS = frozenset(("permute", "transpose"))


def eliminate_cat(program: Program, layouts: Layouts, place: dict[int, int], backend: AnyBackend) -> Program:
    """Let a step write its results into slices of the array that `stack` or `cat` makes of them, if nothing else reads
    them. Views between the step and the concatenation, and after it, are allowed. Typical case: gradients of query, key
    and value.
    """
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    count.update(program.outputs)
    makers = {n: step for step in program.steps for n in step.makes()}
    readers = {n: step for step in program.steps for n in step.uses()}
    steps = list(program.steps)
    for step in program.steps:
        if step.name not in ("stack", "cat") or step.kwargs or not _has_known_layout(step, layouts):
            continue
        found = _find_producers(step, makers, count, layouts)
        if found is None or any(memory.of(n) in memory.written for n in step.uses()):
            continue
        first, chains = found
        kernel = None if first.kwargs else backend.out_variant(first.name)
        if kernel is None:
            continue
        behind = _find_view_consumers(step, readers, count, layouts)
        run = _write_to_cat_kernel(kernel, step, chains, behind, layouts)
        if run is None:
            continue
        gone = {id(one) for one in (step, *behind, *(view for chain in chains for view in chain))}
        last = behind[-1] if behind else step
        fused_step = replace(first, kernel=run, out=last.out)
        steps = [fused_step if one is first else one for one in steps if id(one) not in gone]
    return replace(program, steps=steps)


def _has_known_layout(step: Step, layouts: Layouts) -> bool:
    slots = [*step.uses(), *step.makes()]
    kinds = {layouts[n][1].char if n in layouts else "" for n in slots}
    return len(slots) > 2 and len(kinds) == 1 and kinds <= {"f", "d"}


def _find_producers(step: Step, makers: dict, count: Counter, layouts: Layouts) -> tuple[Step, list[list[Step]]] | None:
    """Return the step whose four-dimensional results are all concatenated in order, and the views of each result, last
    first. Return None in other cases.
    """
    chains, firsts = [], []
    for number in step.uses():
        chain: list[Step] = []
        while count[number] == 1 and number in makers and makers[number].name in _PERMUTATIONS | _RESHAPES:
            chain.append(makers[number])
            number = chain[-1].args[0].number
            if number not in layouts:
                return None
        if count[number] != 1 or number not in makers or len(layouts[number][0]) != 4:
            return None
        chains.append(chain)
        firsts.append(number)
    first = makers[firsts[0]]
    return (first, chains) if first.out == tuple(map(Slot, firsts)) else None


def _find_view_consumers(step: Step, readers: dict, count: Counter, layouts: Layouts) -> list[Step]:
    """Return the views of the concatenated array: a permutation followed by a contiguous reshape; else none."""
    found: list[Step] = []
    number = step.out.number
    while count[number] == 1 and number in readers and readers[number].name in _PERMUTATIONS:
        found.append(readers[number])
        number = found[-1].out.number
    if count[number] == 1 and number in readers and readers[number].name in _RESHAPES:
        return [*found, readers[number]]
    return []


def _write_to_cat_kernel(
    kernel: Any, step: Step, chains: list, behind: list[Step], layouts: Layouts
) -> Callable | None:
    """Return the kernel that writes into the slices, None if the views are not invertible."""
    shape, kind, _ = layouts[step.out.number]
    turns = [one for one in behind if one.name in _PERMUTATIONS]
    final = layouts[(behind[-1] if behind else step).out.number]
    turned = np.empty(shape, kind)
    for one in turns:
        turned = _apply_view(turned, one)
    whole_shape, final_shape = turned.shape, final[0]
    parts = _CatSlices(step, chains, turns, layouts)
    first = np.empty(whole_shape, kind)
    if not final[2] or not all(np.shares_memory(part, first) for part in parts.of(first)):
        return None

    def write_into_cat(*args: Any) -> Any:
        whole = np.empty(whole_shape, kind)
        kernel(*args, into=parts.of(whole))
        return whole.reshape(final_shape)

    return write_into_cat


class _CatSlices:
    """Slices of the concatenated array, by result; `turns` are views after the concatenation."""

    def __init__(self, step: Step, chains: list, turns: list[Step], layouts: Layouts) -> None:
        self.turns, self.chains = turns, chains
        self.shapes = {view.args[0].number: layouts[view.args[0].number][0] for chain in chains for view in chain}
        dim = step.args[1] % len(layouts[step.out.number][0])
        self.places: list[tuple] = []
        start = 0
        for number in step.uses():
            size = 1 if step.name == "stack" else layouts[number][0][dim]
            at = start if step.name == "stack" else slice(start, start + size)
            self.places.append((*(slice(None),) * dim, at))
            start += size

    def of(self, whole: Any) -> list:
        """Return the slices, in the shapes of the results."""
        for one in reversed(self.turns):
            whole = _invert_view(whole, one)
        found = []
        for at, chain in zip(self.places, self.chains, strict=True):
            part = whole[at]
            for view in chain:
                turns = view.name in _PERMUTATIONS
                part = _invert_view(part, view) if turns else part.reshape(self.shapes[view.args[0].number])
            found.append(part)
        return found


def _apply_view(array: Any, view: Step) -> Any:
    return array.transpose(view.args[1]) if view.name == "permute" else array.swapaxes(*view.args[1:])


def _invert_view(array: Any, view: Step) -> Any:
    """Return the array of which `view` would yield the given array."""
    return array.transpose(np.argsort(view.args[1])) if view.name == "permute" else array.swapaxes(*view.args[1:])
