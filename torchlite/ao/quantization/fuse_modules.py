"""Fusion of named layers of a model."""

from __future__ import annotations

import copy
from typing import Any

from torchlite.nn.modules.linear import Identity
from torchlite.nn.modules.module import Module
from torchlite.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import fuse_conv_bn as fuse_conv_bn
from .fuser_method_mappings import fuse_conv_bn_relu as fuse_conv_bn_relu
from .fuser_method_mappings import get_fuser_method
from .utils import getattr_from_fqn

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list: Any, is_qat: bool, additional_fuser_method_mapping: Any = None) -> list[Any]:
    """The layers with the first replaced by the fused one, and the others by `torch.nn.Identity`.

    Hooks before the first and after the last layer are moved to the fused one.

    Args:
        mod_list: The layers.
        is_qat: Whether it is for quantization aware training.
        additional_fuser_method_mapping: More functions, by tuples of classes. Default: none.

    Raises:
        AssertionError: No function fuses such layers.

    Example:
        >>> from torchlite.ao.quantization.fuse_modules import fuse_known_modules
        >>> layers = fuse_known_modules([torch.nn.Linear(1, 2), torch.nn.ReLU()], False)
        >>> [type(layer).__name__ for layer in layers]
        ['LinearReLU', 'Identity']
    """
    types = tuple(type_before_parametrizations(module) for module in mod_list)
    fused = get_fuser_method(types, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    rest = [Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = mod_list[0].training
    return [fused, *rest]


def _fuse_modules(
    model: Module, modules_to_fuse: Any, is_qat: bool, inplace: bool = False, fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    if not inplace:
        model = copy.deepcopy(model)
    more = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    single = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if single else modules_to_fuse:
        found = fuser_func([getattr_from_fqn(model, name) for name in names], is_qat, more)
        for name, module in zip(names, found, strict=True):
            parent, _, last = name.rpartition(".")
            setattr(getattr_from_fqn(model, parent) if parent else model, last, module)
    return model


def fuse_modules(
    model: Module, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Fuses named layers of a model in evaluation mode: convolution or linear layer, batch norm, ReLU.

    Args:
        model: The model.
        modules_to_fuse: A list of names, or several.
        inplace: Whether the model is changed, not a copy. Default: ``False``.
        fuser_func: The function that fuses a list of layers. Default: `fuse_known_modules`.
        fuse_custom_config_dict: More functions, under ``"additional_fuser_method_mapping"``. Default: none.

    Returns:
        The model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU()).eval()
        >>> type(torch.ao.quantization.fuse_modules(model, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """Fuses named layers of a model in training mode into containers, for `prepare_qat`.

    Args:
        model: The model.
        modules_to_fuse: A list of names, or several.
        inplace: Whether the model is changed, not a copy. Default: ``False``.
        fuser_func: The function that fuses a list of layers. Default: `fuse_known_modules`.
        fuse_custom_config_dict: More functions, under ``"additional_fuser_method_mapping"``. Default: none.

    Returns:
        The model.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        >>> type(torch.ao.quantization.fuse_modules_qat(model, ["0", "1"])[0]).__name__
        'ConvBn2d'
    """
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
