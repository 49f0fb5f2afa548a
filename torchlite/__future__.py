"""How modules take new data when they are converted or loaded."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to`, `.double()` and the like make new parameters; False (the default): the parameters stay the
    same objects with other data, where devices allow.
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return the value set by `set_overwrite_module_params_on_conversion`."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` exchange parameters with the new ones by `torch.utils.swap_tensors`, so
    that they stay the same objects in any case; False by default.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Return the value set by `set_swap_module_params_on_conversion`."""
    return _swap_module_params_on_conversion
