"""Functions of several tensors under PyTorch's module name; `torch` has all of them."""

from typing import Any

import torchlite as torch

_NAMES = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft",
    "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(torch, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
