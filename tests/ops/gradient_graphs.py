"""Which first gradients require a gradient themselves under `create_graph`: the cases of the op table, and how one is
observed.

gradient_graphs.json has PyTorch's answers (tools/record_gradient_graphs.py): op, sample, the inputs that require a
gradient, and a character for each of their gradients. "+" stands for a gradient that requires one, "!" for one whose
own backward is an error, "." for one that requires none, and "0" for an input that the results do not depend on. `null`
stands for results without a gradient, and "refused" for an error.
"""

from __future__ import annotations

import json
import pathlib

from .nodes import leaf_inputs
from .op_db import leaves
from .saved_tensors import REFUSALS

RECORDED = pathlib.Path(__file__).with_name("gradient_graphs.json")


def gradient_graph(library, call, row, index: int, wanted) -> str | None:
    """Call an op and differentiate its results: a character for the gradient of each wanted input; None where no
    result has a gradient.
    """
    made: list = []
    args, kwargs = row.values(index)
    args, kwargs = leaf_inputs(args, library, wanted, made), leaf_inputs(kwargs, library, wanted, made)
    inputs = [t for t in made if t.requires_grad]
    library.manual_seed(0)
    results = [t for t in leaves(call(*args, **kwargs)) if t.requires_grad]
    if not results:
        return None
    ones = [library.ones_like(t) for t in results]
    gradients = library.autograd.grad(results, inputs, ones, create_graph=True, allow_unused=True)
    return "".join(_described(library, g, inputs) for g in gradients)


def _described(library, gradient, inputs) -> str:
    if gradient is None:
        return "0"
    if not gradient.requires_grad:
        return "."
    ones = library.ones_like(gradient)
    try:
        library.autograd.grad(gradient, inputs, ones, retain_graph=True, allow_unused=True)
    except REFUSALS:
        return "!"
    return "+"


def recorded() -> dict[str, dict[str, dict[str, str | None]]]:
    """PyTorch's answers, by op, sample and choice."""
    return json.loads(RECORDED.read_text())
