"""ONNX's ops as functions over tensors: what the nodes of a module that was read from a file call.

A function takes the op's inputs in order, None for one that is left out, and its attributes as keywords; what was an
attribute in older versions and is an input now has one name. `outputs` is the number of results that the node has: a
function with that parameter returns a tuple where there are several. Inputs that are numbers rather than data are
annotated `Ints`, `Floats` or `Number`, and come as Python's where the file says them.
"""

from __future__ import annotations

import importlib

from .registry import Op, find, versions

_FAMILIES = (
    "attention", "control", "convolutions", "elementwise", "images", "indexing", "learning", "losses", "norms",
    "quantization", "random", "recurrent", "reductions", "resizing", "sequences", "shapes", "signals", "strings",
    "training", "types",
)  # fmt: skip


def load() -> None:
    """Have all families register what they have."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")


__all__ = ["Op", "find", "load", "versions"]
