"""Weight norm by a hook, deprecated in favour of `parametrizations.weight_norm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn.parameter import Parameter, UninitializedParameter

if TYPE_CHECKING:
    from torchlite.nn.modules.module import Module


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def _norm_except(v, dim):
    """The 2-norm of v over all dimensions but `dim` (over all if it is None), with keepdim."""
    if dim is None or dim == -1:
        return v.norm()
    return v.norm(dim=[d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)


class WeightNorm:
    """The hook that computes `name` from `name_g` and `name_v` before every forward."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight from magnitude and direction."""
        v = getattr(module, self.name + "_v")
        return v * (getattr(module, self.name + "_g") / _norm_except(v, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int) -> Any:
        """Register the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(_norm_except(weight.detach(), hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> Any:
        """Make the weight a parameter again."""
        with torch.no_grad():
            weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> Any:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Any:
    r"""Splits a weight into magnitude and direction; deprecated, use `parametrizations.weight_norm`.

    .. math::

        w = g \, \frac{v}{\|v\|}

    Before each forward pass the weight is computed from the parameters ``{name}_g`` and ``{name}_v``.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.
        dim: Dimension whose indices have a magnitude each; ``None`` is one magnitude for the whole weight. Default: 0.

    Returns:
        The module.

    Raises:
        RuntimeError: The weight has a weight norm already.
        ValueError: The weight is not initialized yet.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([2, 1]), torch.Size([2, 3]))

    References:
        - T. Salimans, D. P. Kingma. Weight normalization: A simple reparameterization to accelerate training of deep
          neural networks. 2016.

    See also:
        `remove_weight_norm`, `torch.nn.utils.parametrizations.weight_norm`.
    """
    import warnings

    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Removes the `weight_norm` of a weight, which becomes a parameter with its present value.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.

    Returns:
        The module.

    Raises:
        ValueError: The weight has no weight norm.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
        >>> _ = torch.nn.utils.remove_weight_norm(layer)
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
