"""The op families. Importing one declares its records."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.slots import SLOTS

# Named, since looking through the folder takes as long as loading three of them.
FAMILIES = (
    "_gradients", "_linalg_common", "activation", "amp", "arithmetic", "attention", "conv", "core", "creation",
    "cross_entropy", "ctc", "dropout", "einsum", "elementary", "embedding", "fft", "gamma", "index", "inference",
    "inplace", "linalg_decomp", "linalg_norm", "linalg_solve", "linalg_spectral", "lists", "loss", "matmul", "norm",
    "optim", "pad", "pointwise", "pooling", "pooling_records", "random", "rearrange", "reduce", "resample", "rnn",
    "scan", "scatter", "segments", "shape", "softmax", "sort", "sparse", "special", "standard", "statistics",
    "vision", "windows",
)  # fmt: skip


def load() -> None:
    """Import every family."""
    for name in FAMILIES:
        importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> Any:
    if name not in ("OpOverload", "OpOverloadPacket", "ops"):  # PyTorch has these in a module of this name
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return SLOTS.overloads(name)
