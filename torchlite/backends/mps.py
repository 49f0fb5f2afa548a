"""Apple's Metal, for which torchlite has no backend."""


def is_available() -> bool:
    """Returns False: torchlite has no Metal backend.

    Example:
        >>> torch.backends.mps.is_available()
        False
    """
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raises RuntimeError: torchlite has no Metal backend.

    Args:
        major: No effect.
        minor: No effect.

    Raises:
        RuntimeError: Always.

    Example:
        >>> torch.backends.mps.is_macos_or_newer(14, 0)
        Traceback (most recent call last):
        RuntimeError: Cannot execute isOnMacOSorNewer() without MPS backend.
    """
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_built() -> bool:
    """Returns False: torchlite has no Metal backend.

    Example:
        >>> torch.backends.mps.is_built()
        False
    """
    return False
