"""The switch of the fused operators that scripted transformers call in eval mode."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Returns whether scripted transformers call the fused operators in eval mode.

    Example:
        >>> torch.backends.mha.get_fastpath_enabled()
        True
    """
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Sets whether scripted transformers call the fused operators in eval mode.

    Args:
        value: Whether they do.

    Example:
        >>> import torchlite as torch
        >>> torch.backends.mha.set_fastpath_enabled(False)
        >>> torch.backends.mha.get_fastpath_enabled()
        False
        >>> torch.backends.mha.set_fastpath_enabled(True)
    """
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
