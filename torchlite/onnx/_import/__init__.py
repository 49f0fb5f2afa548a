"""ONNX ops as functions over tensors, called by the nodes of loaded models.

A function takes the op's inputs in order, None for omitted ones, and attributes as keywords. A parameter that changed
from attribute to input has one name. `outputs` is the node's number of outputs: a function with that parameter returns
a tuple if there are several. Numeric inputs are annotated `Ints`, `Floats` or `Number` and are Python values if
constant.
"""

from __future__ import annotations

import importlib

from .op_registry import Op, find_op, op_versions

_FAMILIES = (
    "attention", "com_microsoft", "control_flow", "conv_pool", "elementwise", "vision", "indexing", "ai_onnx_ml",
    "losses", "matmul", "normalization", "quantization", "random", "recurrent", "reductions", "resize", "sequences",
    "shape_ops", "signals", "strings", "optimizers", "casts",
)  # fmt: skip


def register_all() -> None:
    """Import all op families, which register their functions."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
