"""Helpers for parameters, gradients and sequences. Most are loaded when first asked for."""

import importlib

# Two functions bear the names of their modules. Imported here, they win: a later import of the module finds it loaded
# and binds nothing.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_WHERE = {
    **dict.fromkeys(
        ("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"),
        "clip_grad",
    ),
    **dict.fromkeys(("parameters_to_vector", "vector_to_parameters"), "convert_parameters"),
    **dict.fromkeys(
        ("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"), "fusion"
    ),
    **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"), "memory_format"),
    "skip_init": "init",
}
_MODULES = {
    "clip_grad", "convert_parameters", "fusion", "init", "memory_format", "parametrizations", "parametrize", "prune",
    "rnn", "stateless",
}  # fmt: skip

__all__ = [
    *_WHERE,
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
]


def __getattr__(name):
    if name in _WHERE:
        found = globals()[name] = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    elif name in _MODULES:
        found = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'torchlite.nn.utils' has no attribute '{name}'")
    return found


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
