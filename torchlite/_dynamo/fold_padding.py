"""Makes the zeros around the images of a loaded module's convolution a part of the convolution."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step

_PADDING, _TRANSPOSED = 4, 6  # arguments of `convolution`


def fold_padding(program: Program, layouts: Layouts, place: dict[int, int]) -> Program:
    """Replace convolutions of images with zeros around them by convolutions with a padding. The step that adds the
    zeros is unused then. It stays if other steps read its result, or if fewer zeros are on one side than on the other.
    """
    memory = AliasAnalysis(program, place)
    padded: dict[int, tuple[Slot, tuple[int, ...]]] = {}
    for step in program.steps:
        sides = _sides_of(step)
        if sides and memory.is_plain(step.out.number) and memory.of(step.args[0].number) not in memory.written:
            padded[step.out.number] = step.args[0], sides
    if not padded:
        return program
    found: dict[int, Step] = {}
    count = Counter(n for step in program.steps for n in step.uses())
    for at, step in enumerate(program.steps):
        given = padded.get(step.args[0].number) if step.args and step.args[0].__class__ is Slot else None
        made = None if given is None else _fold(step, *given, layouts)
        if made is not None:
            found[at] = made
            count[step.args[0].number] -= 1
    for at in list(found):
        if count[program.steps[at].args[0].number]:
            del found[at]
    return replace(program, steps=[found.get(at, step) for at, step in enumerate(program.steps)])


def _sides_of(step: Step) -> tuple[int, ...]:
    """Return the zeros on each side of the last dimensions; none for another step."""
    if step.name != "constant_pad_nd" or step.kwargs or step.out.__class__ is not Slot:
        return ()
    input, pad, *value = step.args
    if input.__class__ is not Slot or any(number.__class__ not in (int, float) or number for number in value):
        return ()
    if any(number.__class__ is not int or number < 0 for number in pad) or [*pad[::2]] != [*pad[1::2]]:
        return ()
    return tuple(pad[::2])[::-1]


def _fold(step: Step, input: Slot, sides: tuple[int, ...], layouts: Layouts) -> Step | None:
    """Return the convolution of an image without the zeros around it, None if it stays."""
    if step.name != "convolution" or step.kwargs or step.args[_TRANSPOSED] or step.out.number not in layouts:
        return None
    rank, given = len(layouts[step.out.number][0]) - 2, step.args[_PADDING]
    given = (given,) if given.__class__ is int else tuple(given)
    sides = (0,) * (rank - len(sides)) + sides
    if any(sides[:-rank]) or len(given) not in (1, rank) or any(number.__class__ is not int for number in given):
        return None
    whole = tuple([a + b for a, b in zip(given * (rank // len(given)), sides[-rank:], strict=True)])
    return replace(step, args=(input, *step.args[1:_PADDING], whole, *step.args[_PADDING + 1 :]))
