"""Equalization of the channels between two layers: the weights of one are divided by factors, and those of the next
multiplied, so that both have the same ranges and the network's function stays.
"""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni

__all__ = [
    "channel_range", "converged", "cross_layer_equalization", "equalize", "expand_groups_in_paired_modules_list",
    "get_module_bias", "get_module_weight", "get_name_by_module", "has_bias", "max_over_ndim", "min_over_ndim",
    "process_paired_modules_list_to_name", "set_module_bias", "set_module_weight",
]  # fmt: skip

_supported_types = {nn.Conv2d, nn.Linear, nn.Conv1d}
_supported_intrinsic_types = {nni.ConvReLU2d, nni.LinearReLU, nni.ConvReLU1d}
_all_supported_types = _supported_types | _supported_intrinsic_types


def _layer(module: Any) -> Any:
    """Return the layer with the weight: the module, or the first of a fused one."""
    return module if type(module) in _supported_types else module[0]


def set_module_weight(module: Any, weight: Tensor) -> None:
    """Sets a layer's weight.

    Args:
        module: The layer, which may be fused with an activation.
        weight: The weight.
    """
    _layer(module).weight = nn.Parameter(weight)


def set_module_bias(module: Any, bias: Tensor) -> None:
    """Sets a layer's bias.

    Args:
        module: The layer, which may be fused with an activation.
        bias: The bias.
    """
    _layer(module).bias = nn.Parameter(bias)


def has_bias(module: Any) -> bool:
    """Whether a layer has a bias.

    Args:
        module: The layer, which may be fused with an activation.
    """
    return _layer(module).bias is not None


def get_module_weight(module: Any) -> Any:
    """The weight of a layer.

    Args:
        module: The layer, which may be fused with an activation.
    """
    return _layer(module).weight


def get_module_bias(module: Any) -> Any:
    """The bias of a layer.

    Args:
        module: The layer, which may be fused with an activation.
    """
    return _layer(module).bias


def max_over_ndim(input: Tensor, axis_list: list[int], keepdim: bool = False) -> Tensor:
    """The greatest numbers along several dimensions.

    Args:
        input: The tensor.
        axis_list: The dimensions.
        keepdim: Whether they stay, with one element. Default: ``False``.
    """
    return input.amax(axis_list, keepdim) if axis_list else input


def min_over_ndim(input: Tensor, axis_list: list[int], keepdim: bool = False) -> Tensor:
    """The least numbers along several dimensions.

    Args:
        input: The tensor.
        axis_list: The dimensions.
        keepdim: Whether they stay, with one element. Default: ``False``.
    """
    return input.amin(axis_list, keepdim) if axis_list else input


def channel_range(input: Tensor, axis: int = 0) -> Tensor:
    """The difference of the greatest and the least number of each channel.

    Args:
        input: The tensor.
        axis: The dimension of channels. Default: 0.

    Example:
        >>> from torchlite.ao.quantization._equalize import channel_range
        >>> channel_range(torch.tensor([[1.0, 4.0], [2.0, 2.5]]))
        tensor([3.0000, 0.5000])
    """
    others = [other for other in range(input.ndim) if other != axis]
    return max_over_ndim(input, others) - min_over_ndim(input, others)


def get_name_by_module(model: Any, module: Any) -> str:
    """The name of a module within a model.

    Args:
        model: The model.
        module: The module.

    Raises:
        ValueError: The model does not have the module.
    """
    for name, found in model.named_modules():
        if found is module:
            return name
    raise ValueError("module is not in the model")


def cross_layer_equalization(module1: Any, module2: Any, output_axis: int = 0, input_axis: int = 1) -> None:
    """Equalizes the outputs of a layer and the inputs of the next one.

    Args:
        module1: The first layer.
        module2: The next one.
        output_axis: The dimension of channels in the first weight. Default: 0.
        input_axis: The dimension of channels in the second weight. Default: 1.

    Raises:
        ValueError: The class of a layer is not supported.
        TypeError: The counts of channels differ.

    Example:
        >>> from torchlite.ao.quantization._equalize import channel_range, cross_layer_equalization
        >>> first, second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
        >>> cross_layer_equalization(first, second)
        >>> torch.allclose(channel_range(first.weight, 0), channel_range(second.weight, 1))
        True
    """
    if type(module1) not in _all_supported_types or type(module2) not in _all_supported_types:
        raise ValueError("module type not supported:", type(module1), " ", type(module2))
    first, second = get_module_weight(module1), get_module_weight(module2)
    if first.size(output_axis) != second.size(input_axis):
        raise TypeError(
            "Number of output channels of first arg do not match         number input channels of second arg"
        )
    factors = torch.sqrt(channel_range(first, output_axis) / (channel_range(second, input_axis) + 1e-9))
    inverse = torch.reciprocal(factors)

    def along(numbers: Tensor, weight: Tensor, axis: int) -> Tensor:
        return numbers.reshape([-1 if dim == axis else 1 for dim in range(weight.ndim)])

    set_module_weight(module1, first * along(inverse, first, output_axis))
    if has_bias(module1):
        set_module_bias(module1, get_module_bias(module1) * inverse)
    set_module_weight(module2, second * along(factors, second, input_axis))


def process_paired_modules_list_to_name(model: Any, paired_modules_list: list[list[Any]]) -> list[list[Any]]:
    """Replaces modules in groups by their names.

    Args:
        model: The model.
        paired_modules_list: The groups, lists of names or modules, which are changed.

    Raises:
        TypeError: An item is neither a name nor a module.
    """
    for group in paired_modules_list:
        for place, item in enumerate(group):
            if isinstance(item, nn.Module):
                group[place] = get_name_by_module(model, item)
            elif not isinstance(item, str):
                raise TypeError("item must be a nn.Module or a string")
    return paired_modules_list


def expand_groups_in_paired_modules_list(paired_modules_list: list[list[str]]) -> list[list[str]]:
    """The pairs of neighbours in groups of names.

    Args:
        paired_modules_list: The groups.

    Raises:
        ValueError: A group has one name.

    Example:
        >>> from torchlite.ao.quantization._equalize import expand_groups_in_paired_modules_list
        >>> expand_groups_in_paired_modules_list([["a", "b", "c"]])
        [['a', 'b'], ['b', 'c']]
    """
    if any(len(group) == 1 for group in paired_modules_list):
        raise ValueError("Group must have at least two modules")
    return [[*pair] for group in paired_modules_list for pair in pairwise(group)]


def equalize(model: Any, paired_modules_list: list[list[Any]], threshold: float = 1e-4, inplace: bool = True) -> Any:
    """Equalizes pairs of layers, again and again until the weights stay.

    Args:
        model: The model.
        paired_modules_list: Groups of layers that follow each other, by name or as modules.
        threshold: The change of all weights at which it ends. Default: 1e-4.
        inplace: Whether the model is changed, not a copy. Default: ``True``.

    Returns:
        The model.

    Raises:
        TypeError: An item is neither a name nor a module, or the channels of a pair differ.
        ValueError: A group has one layer, or the class of a layer is not supported.

    Example:
        >>> from torchlite.ao.quantization._equalize import channel_range, equalize
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 5), torch.nn.Linear(5, 2))
        >>> _ = equalize(model, [["0", "1", "2"]], 1e-6)
        >>> torch.allclose(channel_range(model[0].weight, 0), channel_range(model[1].weight, 1), rtol=1e-3)
        True
    """
    pairs = process_paired_modules_list_to_name(model, paired_modules_list)
    if not inplace:
        model = copy.deepcopy(model)
    pairs = expand_groups_in_paired_modules_list(pairs)
    names = {name for pair in pairs for name in pair}
    now = {name: module for name, module in model.named_modules() if name in names}
    before: dict[str, Any] = dict.fromkeys(now)
    while not converged(now, before, threshold):
        for first, second in pairs:
            before[first], before[second] = copy.deepcopy(now[first]), copy.deepcopy(now[second])
            cross_layer_equalization(now[first], now[second])
    return model


def converged(curr_modules: dict[str, Any], prev_modules: dict[str, Any], threshold: float = 1e-4) -> bool:
    """Whether the sum of the norms of the changes of all weights is below a threshold.

    Args:
        curr_modules: The layers by name.
        prev_modules: The same layers before; ``None`` says that there was none.
        threshold: The threshold. Default: 1e-4.

    Raises:
        ValueError: The names differ.
    """
    if curr_modules.keys() != prev_modules.keys():
        raise ValueError("The keys to the given mappings must have the same set of names of modules")
    if None in prev_modules.values():
        return False
    change = torch.tensor(0.0)
    for name, module in curr_modules.items():
        change += torch.norm(get_module_weight(module) - get_module_weight(prev_modules[name]))
    return bool(change < threshold)
