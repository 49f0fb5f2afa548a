"""Autograd classes and functions that PyTorch implements in C++."""

from __future__ import annotations

from typing import Any

from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import count_active
from ..autograd.saved_tensors import SavedTensor

__all__ = [
    "SavedTensor", "_pop_saved_tensors_default_hooks", "_push_saved_tensors_default_hooks",
    "_saved_tensors_hooks_is_enabled", "_top_saved_tensors_default_hooks",
]  # fmt: skip


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be entered in this thread."""
    return saved_tensor_hooks.forbidden is None


def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
    """Enter a pair of saved-tensor hooks."""
    if saved_tensor_hooks.forbidden is not None:
        raise RuntimeError(saved_tensor_hooks.forbidden)
    saved_tensor_hooks.stack = [*saved_tensor_hooks.stack, (pack_hook, unpack_hook)]
    count_active(1)


def _pop_saved_tensors_default_hooks() -> None:
    """Leave the innermost pair."""
    if saved_tensor_hooks.stack:
        saved_tensor_hooks.stack = saved_tensor_hooks.stack[:-1]
        count_active(-1)


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool = False) -> Any:
    """The innermost pair of saved-tensor hooks; None where there is none."""
    return saved_tensor_hooks.stack[-1] if saved_tensor_hooks.stack else None
