"""What an op's node keeps of its inputs and outputs: the cases of the op table, and how one is looked at."""

from __future__ import annotations

import itertools
import json
import pathlib

import numpy as np

from .op_db import leaves

RECORDED = pathlib.Path(__file__).with_name("saved_tensors.json")


def subsets(count: int) -> list[tuple[int, ...]]:
    """Which of `count` inputs want a gradient: every choice of few, else each alone and all of them."""
    places = range(count)
    if count > 3:
        return [*((i,) for i in places), tuple(places)]
    return [s for n in range(1, count + 1) for s in itertools.combinations(places, n)]


def floats(tree) -> int:
    """How many arrays of a tree can want a gradient."""
    if isinstance(tree, np.ndarray):
        return int(tree.dtype.kind in "fc")
    if isinstance(tree, dict):
        tree = list(tree.values())
    return sum(map(floats, tree)) if isinstance(tree, (list, tuple)) else 0


def inputs(tree, library, wanted, made: list):
    """The arrays of a tree as tensors that were computed from leaves; those of the numbers `wanted` want a gradient.
    They are put into `made`, in order.
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


def look(library, call, args, kwargs, wanted, place_of) -> tuple:
    """Call an op: (the numbers of the inputs that are kept, those of the outputs, the bytes of all that is kept,
    whether a result wants a gradient). `place_of(tensor)` is (what stands for its memory, bytes). Seen through
    saved-tensor hooks.
    """
    made: list = []
    args, kwargs = inputs(args, library, wanted, made), inputs(kwargs, library, wanted, made)
    kept, held = {}, []

    def pack(tensor):
        place, size = place_of(tensor)
        held.append(tensor.detach())
        if size:
            kept[place] = size
        return tensor

    library.manual_seed(0)
    with library.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        results = leaves(call(*args, **kwargs))
    given = [place_of(t)[0] for t in made]
    own = [place_of(t)[0] for t in results]
    return (
        [i for i, place in enumerate(given) if place in kept],
        [i for i, place in enumerate(own) if place in kept and place not in given],
        sum(kept.values()),
        any(t.requires_grad for t in results),
    )


def recorded() -> dict:
    """PyTorch's answers, by "op/sample/0,1"."""
    return json.loads(RECORDED.read_text())
