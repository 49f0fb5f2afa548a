"""ONNX's ops as functions over tensors: what the nodes of a module that was read from a file call.

A function takes the op's inputs in order, None for one that is left out, and its attributes as keywords; what was an
attribute in older versions and is an input now has one name. `outputs` is the number of results that the node has: a
function with that parameter returns a tuple where there are several. Inputs that are numbers rather than data are
annotated `Ints`, `Floats` or `Number`, and come as Python's where the file says them.
"""

from __future__ import annotations

import importlib

from .op_registry import Op, find_op, op_versions

_FAMILIES = (
    "attention", "control_flow", "conv_pool", "elementwise", "vision", "indexing", "ai_onnx_ml", "losses", "normalization",
    "quantization", "random", "recurrent", "reductions", "resize", "sequences", "shape_ops", "signals", "strings",
    "optimizers", "casts",
)  # fmt: skip


def register_all() -> None:
    """Have all families register what they have."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")


__all__ = ["Op", "find_op", "register_all", "op_versions"]
