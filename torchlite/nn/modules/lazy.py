"""Base of lazy modules, whose sizes come from their first input."""

from __future__ import annotations

from typing import Any

from torchlite.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """The mixin of lazy modules, which take sizes from the arguments of their first call.

    The first call runs ``initialize_parameters`` with the arguments. Then the class of the module becomes
    ``cls_to_become``. Make that call (a dry run) before you create an optimizer. Loading a ``state_dict`` also gives
    the parameters their shapes.

    Args:
        args: Arguments of the constructor of the layer.
        kwargs: Keyword arguments of it.

    Attributes:
        cls_to_become (type): The class of the initialized module. ``None`` keeps the lazy one.

    Example:
        >>> layer = torch.nn.LazyLinear(3)
        >>> layer.has_uninitialized_params()
        True
        >>> output = layer(torch.zeros(4, 2))
        >>> type(layer).__name__, layer.in_features
        ('Linear', 2)

    See also:
        `LazyLinear`, `torch.nn.UninitializedParameter`.
    """

    cls_to_become: type | None = None
    # Of the layer that this is mixed into.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _get_name: Any
    register_forward_pre_hook: Any
    _register_load_state_dict_pre_hook: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # An uninitialised parameter cannot be detached, so it is returned as is.
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if is_lazy(buf) or keep_vars else buf.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        import torchlite as torch

        for name, param in [*self._parameters.items(), *self._buffers.items()]:
            key = prefix + name
            if key in state_dict and param is not None and is_lazy(param) and not is_lazy(state_dict[key]):
                with torch.no_grad():
                    param.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Creates the parameters from the arguments of the first call; each lazy module defines it.

        Args:
            args: Arguments of the call.
            kwargs: Keyword arguments of the call.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Returns whether a parameter or buffer has no shape yet.

        Returns:
            A bool.
        """
        return any(is_lazy(value) for value in [*self._parameters.values(), *self._buffers.values()])

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
