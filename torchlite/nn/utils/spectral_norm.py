"""Spectral norm by a hook, deprecated in favour of `parametrizations.spectral_norm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn.parameter import Parameter

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite.nn.modules.module import Module


__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook that divides `name_orig` by its largest singular value before every forward."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Any:
        """Return the weight as a matrix: dimension `dim` first and all others flattened."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: Any) -> Any:
        """The normalised weight."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
                # The buffers change at the next call, while this one may still be differentiated.
                u, v = u.clone(), v.clone()
        return weight / torch.dot(u, torch.mv(matrix, v))

    def remove(self, module: Module) -> Any:
        """Make the weight a parameter again."""
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> Any:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: Any, dim: int, eps: float) -> Any:
        """Register the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with torch.no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(_VersionHook(hook))
        module._register_load_state_dict_pre_hook(_OldStateHook(hook))
        return hook

    def _find_right_vector(self, matrix: Tensor, u: Tensor, sigma: Tensor) -> Any:
        """The vector v of least length with ``W v`` along u, of the length for which ``u W v`` is `sigma`."""
        v = torch.mv(torch.linalg.pinv(matrix), u)
        return v * (sigma / torch.dot(u, torch.mv(matrix, v)))


class _VersionHook:
    """The state_dict hook that stores the version of the norm in the module's metadata, as PyTorch does."""

    def __init__(self, norm: SpectralNorm) -> None:
        self.norm = norm

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.norm.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.norm._version


class _OldStateHook:
    """The hook that completes a state without a version: it has the divided weight, and no vector v."""

    def __init__(self, norm: SpectralNorm) -> None:
        self.norm = norm

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *rest: Any
    ) -> None:
        name = prefix + self.norm.name
        version = local_metadata.get("spectral_norm", {}).get(self.norm.name + ".version")
        complete = all(name + suffix in state_dict for suffix in ("_orig", "_u", "_v")) and name not in state_dict
        if version is not None and version >= 1 or version is None and complete:
            return
        missing = [name + suffix for suffix in ("_orig", "", "_u") if name + suffix not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with torch.no_grad():
            original, divided = state_dict[name + "_orig"], state_dict.pop(name)
            sigma = (original / divided).mean()
            matrix = self.norm.reshape_weight_to_matrix(original)
            state_dict[name + "_v"] = self.norm._find_right_vector(matrix, state_dict[name + "_u"], sigma)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    r"""Divides a weight by its largest singular value before each forward pass; superseded by
    `parametrizations.spectral_norm`.

    The largest singular value is estimated as :math:`u^{\mathsf{T}} W v` by power iterations in training mode. The
    module gets the parameter ``{name}_orig`` and the buffers ``{name}_u`` and ``{name}_v``.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.
        n_power_iterations: Number of power iterations of a forward pass; at least 1. Default: 1.
        eps: Least norm by which the vectors are divided. Default: 1e-12.
        dim: Dimension that becomes the rows of the matrix W; all others are its columns. Default: 1 for transposed
            convolutions, else 0.

    Returns:
        The module.

    Raises:
        ValueError: ``n_power_iterations`` is less than 1, or the weight is ``None``.
        RuntimeError: The weight has a spectral norm already.
        KeyError: The module has no parameter of the name.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> _ = torch.nn.init.constant_(layer.weight, 3.0)  # the largest singular value is 6
        >>> layer = torch.nn.utils.spectral_norm(layer)
        >>> _ = layer(torch.zeros(1, 2))
        >>> layer.weight.detach()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])

    References:
        - T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida. Spectral normalization for generative adversarial networks.
          2018.

    See also:
        `remove_spectral_norm`, `torch.nn.utils.parametrizations.spectral_norm`.
    """
    if dim is None:
        from torchlite.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Removes the `spectral_norm` of a weight, which becomes a parameter with its present value.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.

    Returns:
        The module.

    Raises:
        ValueError: The weight has no spectral norm.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
        >>> _ = torch.nn.utils.remove_spectral_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for place, one in list(module._state_dict_hooks.items()):
                if isinstance(one, _VersionHook) and one.norm is hook:
                    del module._state_dict_hooks[place]
            for place, one in list(module._load_state_dict_pre_hooks.items()):
                if isinstance(one.hook, _OldStateHook) and one.hook.norm is hook:
                    del module._load_state_dict_pre_hooks[place]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
