"""Masks as parametrizations, and names of modules and their tensors."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = [
    "FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param", "module_to_fqn",
    "swap_module",
]  # fmt: skip


def module_contains_param(module: Any, parametrization: Any) -> bool:
    """Whether a tensor of a module has a parametrization of a class.

    Args:
        module: The module.
        parametrization: The class.
    """
    if not is_parametrized(module):
        return False
    return any(isinstance(one, parametrization) for chain in module.parametrizations.values() for one in chain)


def swap_module(mod: Any, mapping: dict[Any, Any]) -> Any:
    """The module that takes the place of one, by its class; it gets the hooks.

    Args:
        mod: The module.
        mapping: The classes by those that they replace; each has ``from_dense``.

    Returns:
        The new module, or the same one.

    Raises:
        AssertionError: The module's tensors are on several devices.
    """
    kind = type_before_parametrizations(mod)
    if kind not in mapping:
        return mod
    found = mapping[kind].from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        found.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        found.register_forward_hook(hook)
    devices = {tensor.device for tensor in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(
            f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    for device in devices:
        found.to(device)
    return found


def module_to_fqn(model: Any, module: Any, prefix: str = "") -> str | None:
    """The name of a module within a model.

    Args:
        model: The model.
        module: The module.
        prefix: The beginning of the name. Default: none.

    Returns:
        The name, an empty text for the model itself, and ``None`` if the model does not have the module.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
        >>> torch.ao.pruning.module_to_fqn(model, model[0][0])
        '0.0'
    """
    if module is model:
        return ""
    for name, found in model.named_modules(remove_duplicate=False):
        if found is module:
            return prefix + name
    return None


def fqn_to_module(model: Any, path: str) -> Any:
    """The module, or the tensor, of a name within a model.

    Args:
        model: The model.
        path: The name, of which an empty one is the model's.

    Returns:
        It, or ``None``.

    Example:
        >>> torch.ao.pruning.fqn_to_module(torch.nn.Sequential(torch.nn.ReLU()), "0")
        ReLU()
    """
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: Any, tensor_fqn: str) -> dict[str, Any]:
    """The parts of a tensor's name.

    Args:
        model: The model.
        tensor_fqn: The name.

    Returns:
        ``"module_fqn"``, ``"module"``, ``"tensor_name"`` and ``"tensor_fqn"``.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
        >>> found = torch.ao.pruning.get_arg_info_from_tensor_fqn(model, "0.weight")
        >>> found["module_fqn"], found["tensor_name"]
        ('0', 'weight')
    """
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn, "module": fqn_to_module(model, module_fqn), "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }  # fmt: skip


class FakeSparsity(nn.Module):
    """A parametrization that multiplies a tensor by a mask.

    Args:
        mask: The mask, a tensor of the same shape.

    Example:
        >>> torch.ao.pruning.FakeSparsity(torch.tensor([0.0, 1.0]))(torch.tensor([2.0, 3.0]))
        tensor([0., 3.])
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """An empty dictionary: the sparsifier saves the mask.

        Args:
            *args: No effect.
            **kwargs: No effect.
        """
        return {}
