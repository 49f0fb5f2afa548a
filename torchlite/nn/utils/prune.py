"""Pruning: a parameter `name` becomes `name_orig` times a mask (the buffer `name_mask`), multiplied before each
forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_classes
from torchlite._settings.module_dir import make_module_dir

from ._pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
)
from ._pruning_methods import _compute_norm as _compute_norm
from ._pruning_methods import _compute_nparams_toprune as _compute_nparams_toprune
from ._pruning_methods import _validate_pruning_amount as _validate_pruning_amount
from ._pruning_methods import _validate_pruning_amount_init as _validate_pruning_amount_init
from ._pruning_methods import _validate_pruning_dim as _validate_pruning_dim
from ._pruning_methods import _validate_structured_pruning as _validate_structured_pruning

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite.nn.modules.module import Module


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


def identity(module: Module, name: str) -> Any:
    """Adds a mask of ones to a parameter: the names of a pruned one, but nothing is pruned.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.

    Returns:
        The module.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = prune.identity(torch.nn.Linear(2, 1), "weight")
        >>> sorted(layer.state_dict())
        ['bias', 'weight_mask', 'weight_orig']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Any:
    """Prunes random elements of a parameter.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.

    Returns:
        The module.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = prune.random_unstructured(torch.nn.Linear(4, 2), "weight", amount=0.25)
        >>> layer.weight_mask.sum()
        tensor(6.)

    See also:
        `l1_unstructured`, `random_structured`.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of a parameter with the least magnitude.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.
        importance_scores: A tensor of the parameter's shape whose least magnitudes are pruned. Default: the parameter
            itself.

    Returns:
        The module.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.
        AssertionError: ``importance_scores`` has another shape.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = torch.nn.Linear(4, 1, bias=False)
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, -4.0, 2.0, 3.0]), layer.parameters())
        >>> prune.l1_unstructured(layer, "weight", amount=0.5).weight.detach()
        tensor([[ 0., -4.,  0.,  3.]])

    See also:
        `ln_structured`, `global_unstructured`.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Any:
    """Prunes random slices of a parameter along a dimension.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
        dim: The dimension of the slices.

    Returns:
        The module.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range, or the parameter has fewer than 2 dimensions.
        IndexError: ``dim`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = prune.random_structured(torch.nn.Linear(4, 2), "weight", amount=1, dim=0)
        >>> layer.weight_mask.sum()
        tensor(4.)

    See also:
        `ln_structured`.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: int, dim: int, importance_scores: Any = None) -> Any:
    """Prunes the slices of a parameter with the least norm along a dimension.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
        n: Order of the norm, as of `torch.norm`.
        dim: The dimension of the slices.
        importance_scores: A tensor of the parameter's shape whose norms count. Default: the parameter itself.

    Returns:
        The module.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range, or the parameter has fewer than 2 dimensions.
        IndexError: ``dim`` is out of range.
        AssertionError: ``importance_scores`` has another shape.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = torch.nn.Linear(2, 2, bias=False)
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([3.0, 4.0, 1.0, 1.0]), layer.parameters())
        >>> prune.ln_structured(layer, "weight", amount=1, n=2, dim=0).weight.detach()
        tensor([[3., 4.],
                [0., 0.]])

    See also:
        `l1_unstructured`.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
    """Prunes several parameters as if they were one: the method chooses among all their elements.

    Args:
        parameters: An iterable of pairs of a module and the name of a parameter.
        pruning_method: A class of an unstructured method, such as `L1Unstructured`.
        importance_scores: A dict from pairs to tensors of the parameters' shapes, which the method gets instead.
            Default: the parameters.
        kwargs: Keyword arguments of the class, such as ``amount``.

    Raises:
        TypeError: ``parameters`` is not iterable, ``importance_scores`` is no dict, or the method is not unstructured.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> first, second = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1, bias=False)
        >>> weights = [*first.parameters(), *second.parameters()]
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0, 4.0]), weights)
        >>> prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=0.5)
        >>> first.weight.detach(), second.weight.detach()
        (tensor([[0., 0.]]), tensor([[3., 4.]]))

    See also:
        `l1_unstructured`.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevant = torch.cat([scores.get((module, name), getattr(module, name)).reshape(-1) for module, name in parameters])
    masks = torch.cat(
        [
            getattr(module, name + "_mask", torch.ones_like(getattr(module, name))).reshape(-1)
            for module, name in parameters
        ]
    )
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    final, start = container.compute_mask(relevant.detach(), masks), 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=final[start : start + param.numel()].view_as(param))
        start += param.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Any:
    """Prunes a parameter by a given mask.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        mask: The mask, of the parameter's shape: 0 where an element is pruned, else 1.

    Returns:
        The module.

    Raises:
        AssertionError: ``mask`` has another shape.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = prune.custom_from_mask(torch.nn.Linear(2, 1), "bias", torch.tensor([0]))
        >>> layer.bias == 0
        tensor([True])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Any:
    """Makes a pruned parameter an ordinary one; pruned elements stay 0.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.

    Returns:
        The module.

    Raises:
        ValueError: The parameter is not pruned.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = prune.random_unstructured(torch.nn.Linear(4, 2, bias=False), "weight", amount=3)
        >>> _ = prune.remove(layer, "weight")
        >>> [name for name, _ in layer.named_parameters()], (layer.weight == 0).sum()
        (['weight'], tensor(3))
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> Any:
    """Returns whether a parameter of a module or of its submodules is pruned.

    Args:
        module: The module.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = torch.nn.Linear(2, 1)
        >>> before = prune.is_pruned(layer)
        >>> before, prune.is_pruned(prune.identity(layer, "weight"))
        (False, True)
    """
    return any(
        isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values()
    )


adopt_classes(globals())

__dir__ = make_module_dir(globals())
