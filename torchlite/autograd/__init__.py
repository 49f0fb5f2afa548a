"""Reverse-mode automatic differentiation: backward, grad, grad modes, custom functions, gradient checks."""

from __future__ import annotations

import importlib
from typing import Any

import torchlite as torch

from .backward_api import backward, grad
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck  # now, so that the module never takes the function's name

_LAZY = {
    "Function": "function",
    "NestedIOFunction": "function",
    "Variable": "variable",
    "SavedTensor": "saved_tensors",
    "variable": None,
    "_functions": None,
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
    "functional": None,
    "graph": None,
    "function": None,
    "anomaly_mode": None,
    "grad_mode": None,
    "forward_ad": None,
    "profiler": None,
    "profiler_util": None,
}


def kineto_available() -> bool:
    """Returns ``False``: Kineto, PyTorch's tracing library, is not used."""
    return False


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple:
    """Returns the shapes of an output, or of a `GradientEdge`, and of its gradient, as `grad` compares them."""
    if isinstance(output, torch.autograd.graph.GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return torch.Size(output.node._input_metadata[output.output_nr].shape), grad.shape
    if output.is_nested and output.layout is torch.strided:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    home = _LAZY[name]
    module = importlib.import_module(f".{home or name}", __name__)
    globals()[name] = module
    # The import system set the submodule under its name, which may be a function's name. The functions win.
    globals().update(
        {other: getattr(module, other) for other, where in _LAZY.items() if where is not None and where == home}
    )
    return globals()[name]


__all__ = [
    "Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad",
    "enforce_grad_layout_policy", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "is_grad_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip


# What this module imports for itself.
_INTERNAL = {
    "Any",
    "annotations",
    "backward_api",
    "engine",
    "gradient_edge",
    "hook_runner",
    "importlib",
    "saved_tensors",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - _INTERNAL)
