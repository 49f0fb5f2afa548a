"""How modules take new data when they are converted or loaded."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether `Module.to`, `.double()` and the like make new parameters.

    Args:
        value: ``False``: the parameters stay the same objects with other data, where devices allow it. ``True``: they
            are replaced. Default of the process: ``False``.

    Example:
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer = torch.nn.Linear(2, 2)
        >>> before = layer.weight
        >>> layer.double().weight is before
        False
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Returns the value that `set_overwrite_module_params_on_conversion` set.

    Example:
        >>> torch.__future__.get_overwrite_module_params_on_conversion()
        False
    """
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions and `load_state_dict` exchange parameters with the new ones by
    `torch.utils.swap_tensors`.

    The parameters then stay the same objects in any case.

    Args:
        value: Whether they are exchanged. Default of the process: ``False``.

    Example:
        >>> torch.__future__.set_swap_module_params_on_conversion(True)
        >>> layer = torch.nn.Linear(2, 2)
        >>> before = layer.weight
        >>> layer.double().weight is before
        True
        >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Returns the value that `set_swap_module_params_on_conversion` set.

    Example:
        >>> torch.__future__.get_swap_module_params_on_conversion()
        False
    """
    return _swap_module_params_on_conversion
