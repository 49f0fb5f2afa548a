"""Helpers for parameters, gradients and sequences. Most are loaded on first access."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from torchlite._settings.module_dir import make_module_dir

# Two functions have the names of their modules. They are imported here, so a later import of the module finds it loaded
# and does not rebind the name.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_MODULE_OF = {
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
    *_MODULE_OF,
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
]


if TYPE_CHECKING:
    from . import clip_grad as clip_grad
    from . import convert_parameters as convert_parameters
    from . import fusion as fusion
    from . import init as init
    from . import memory_format as memory_format
    from . import parametrizations as parametrizations
    from . import parametrize as parametrize
    from . import prune as prune
    from . import rnn as rnn
    from . import stateless as stateless
    from .clip_grad import clip_grad_norm as clip_grad_norm
    from .clip_grad import clip_grad_norm_ as clip_grad_norm_
    from .clip_grad import clip_grad_value_ as clip_grad_value_
    from .clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
    from .clip_grad import get_total_norm as get_total_norm
    from .convert_parameters import parameters_to_vector as parameters_to_vector
    from .convert_parameters import vector_to_parameters as vector_to_parameters
    from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from .init import skip_init as skip_init
    from .memory_format import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
    from .memory_format import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
else:

    def __getattr__(name):
        if name in _MODULE_OF:
            found = globals()[name] = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
        elif name in _MODULES:
            found = importlib.import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return found


__dir__ = make_module_dir(globals(), " ".join(_MODULES))
