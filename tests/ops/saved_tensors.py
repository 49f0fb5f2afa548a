"""Inputs and outputs that an op's node saves for backward: the cases of the op table, and how one is observed.

saved_tensors.json has PyTorch's answers (tools/record_saved_tensors.py): op, sample, the inputs that require a
gradient, and the inputs and results that are saved for them. `null` stands for results without a gradient, and
"refused" for an error.
"""

from __future__ import annotations

import itertools
import json
import pathlib

import numpy as np

from .op_db import leaves

RECORDED = pathlib.Path(__file__).with_name("saved_tensors.json")
REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError)  # errors of a choice that PyTorch refuses


def subsets(count: int) -> list[tuple[int, ...]]:
    """Which of `count` inputs want a gradient: every choice of few, else each alone and all of them."""
    places = range(count)
    if count > 3:
        return [*((i,) for i in places), tuple(places)]
    return [s for n in range(1, count + 1) for s in itertools.combinations(places, n)]


def input_names(row, index: int) -> list[tuple[str, bool]]:
    """The names of a sample's arrays, and whether each can require a gradient: "weight", "tensors[1]"."""
    args, kwargs = row.values(index)
    names = [row.parameters[i] if i < len(row.parameters) else f"args[{i}]" for i in range(len(args))]
    found: list[tuple[str, bool]] = []

    def visit(name, value):
        if isinstance(value, np.ndarray):
            found.append((name, value.dtype.kind in "fc"))
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                visit(f"{name}[{i}]", item)
        elif isinstance(value, dict):
            for key, item in value.items():
                visit(f"{name}[{key!r}]", item)

    for name, value in [*zip(names, args, strict=True), *kwargs.items()]:
        visit(name, value)
    return found


def choices(row, index: int) -> dict[str, tuple[int, ...]]:
    """The choices of a sample's inputs that require a gradient: their names, and their numbers among the float ones."""
    floats = [name for name, is_float in input_names(row, index) if is_float]
    return {", ".join(floats[i] for i in wanted): wanted for wanted in subsets(len(floats))}


def check_choices(rows, answers, allowed, found_of, is_same) -> None:
    """Compare every choice of rows with PyTorch's answers. allowed: names of ops of which a sample has another answer.
    found_of: called with a row, the sample's number, the choice. is_same: called with what it found and the answer.
    """
    wrong, needless = [], []
    for row in rows:
        differs = False
        for i, label in enumerate(row.labels):
            for choice, wanted in choices(row, i).items():
                expected = answers[row.name][label][choice]
                if expected == "refused":
                    continue
                try:
                    found = found_of(row, i, wanted)
                except RuntimeError as error:
                    found = str(error)
                if not is_same(found, expected):
                    differs = True
                    if row.name not in allowed:
                        wrong.append((row.name, label, choice, found, expected))
        if row.name in allowed and not differs:
            needless.append(row.name)
    assert not wrong
    assert not needless, "these have PyTorch's answers: take them out of the allowed ones"


def inputs(tree, library, wanted, made: list):
    """The arrays of a tree as tensors that were computed from leaves; those of the numbers `wanted` want a gradient.
    They are appended to `made`, in order.
    """
    if isinstance(tree, np.ndarray):
        tensor = library.from_numpy(tree.copy())
        if tree.dtype.kind in "fc":
            number = sum(t.dtype.is_floating_point or t.dtype.is_complex for t in made)
            tensor = (tensor.requires_grad_() if number in wanted else tensor) + 0
        made.append(tensor)
        return tensor
    if isinstance(tree, (list, tuple)):
        return type(tree)(inputs(item, library, wanted, made) for item in tree)
    if isinstance(tree, dict):
        return {k: inputs(v, library, wanted, made) for k, v in tree.items()}
    return tree


def saved_by(library, call, row, index: int, wanted, place_of) -> list[str] | None:
    """Call an op: the names of the inputs and results that are saved, seen through saved-tensor hooks; None where no
    result has a gradient. `place_of(tensor)` is (what stands for its memory, bytes).
    """
    made: list = []
    args, kwargs = row.values(index)
    args, kwargs = inputs(args, library, wanted, made), inputs(kwargs, library, wanted, made)
    saved, alive = set(), []

    def pack(tensor):
        place, size = place_of(tensor)
        alive.append(tensor.detach())
        if size:
            saved.add(place)
        return tensor

    library.manual_seed(0)
    with library.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        results = leaves(call(*args, **kwargs))
    given = [place_of(t)[0] for t in made]
    own = [place_of(t)[0] for t in results]
    if not any(t.requires_grad for t in results):
        return None
    found = [name for (name, _), place in zip(input_names(row, index), given, strict=True) if place in saved]
    return found + [f"result {i}" for i, place in enumerate(own) if place in saved and place not in given]


def recorded() -> dict[str, dict[str, dict[str, list[str] | str | None]]]:
    """PyTorch's answers, by op, sample and choice."""
    return json.loads(RECORDED.read_text())
