"""The op families. Importing one declares its records."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.callbacks import CALLBACKS

# Named, since looking through the folder takes as long as loading three of them.
FAMILIES = (
    "_gradient_helpers", "_linalg_common", "activation", "grad_scaling", "binary", "attention", "conv", "internal",
    "creation", "cross_entropy", "ctc_loss", "dropout", "einsum", "unary", "embedding", "fft", "gamma_sampling",
    "indexing", "fused_inference", "inplace", "linalg_decomp", "linalg_norm", "linalg_solve", "linalg_spectral",
    "multi_tensor", "loss", "matmul", "normalization", "fused_optim", "pad", "pointwise", "pooling",
    "pooling_kernels", "random", "manipulation", "reduce", "resample", "rnn", "scan", "gather_scatter",
    "segment_reduce", "views", "softmax", "sort", "sparse_matmul", "special", "statistics", "vision",
    "window_functions",
)  # fmt: skip


def load() -> None:
    """Import every family."""
    for name in FAMILIES:
        importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> Any:
    if name not in ("OpOverload", "OpOverloadPacket", "ops"):  # PyTorch has these in a module of this name
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return CALLBACKS.overloads(name)
