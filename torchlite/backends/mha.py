"""The switch of the fused operators that scripted transformers call in eval mode."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """True if scripted transformers call the fused operators."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set whether they do.

    >>> import torchlite as torch
    >>> torch.backends.mha.set_fastpath_enabled(False)
    >>> torch.backends.mha.get_fastpath_enabled()
    False
    >>> torch.backends.mha.set_fastpath_enabled(True)
    """
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
