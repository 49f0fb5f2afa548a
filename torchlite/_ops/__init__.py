"""The op families. Importing a module registers its op records."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.callbacks import CALLBACKS

# Named, since looking through the folder takes as long as loading three of them.
FAMILIES = (
    "_dtype_checks", "_gradient_helpers", "_linalg_common", "activation", "attention", "binary", "comparison", "conv",
    "covariance", "creation", "creation_ranges", "cross_entropy", "ctc_loss", "dropout", "einsum", "embedding",
    "fake_quantize", "fft", "fused_inference", "fused_optim", "gamma_sampling", "gather_scatter", "grad_scaling",
    "grouped_matmul", "histogram", "indexing", "inplace", "internal_view_ops", "joining_and_splitting", "linalg_decomp",
    "linalg_det", "linalg_lu", "linalg_norm", "linalg_solve", "linalg_spectral", "linear", "loss", "manipulation",
    "margin_loss", "matmul", "multi_tensor_clip", "node_graphs", "normalization", "pad", "piecewise_activation",
    "pointwise", "pooling", "pooling_checks", "pooling_kernels", "quantized", "random", "random_fill",
    "recurrent_steps", "reduce", "resample", "rnn", "rows", "scaled_matmul", "scan", "segment_reduce", "softmax",
    "sort", "sparse_matmul", "special", "statistics", "stft", "tensor_products", "unary", "view_copies", "views",
    "vision", "weight_only", "window_functions",
)  # fmt: skip


def load() -> None:
    """Import every family."""
    for name in FAMILIES:
        importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> Any:
    if name == "HigherOrderOperator":
        return CALLBACKS.higher_order_class()
    if name not in ("OpOverload", "OpOverloadPacket", "ops"):  # PyTorch has these in a module of this name
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return CALLBACKS.overloads(name)
