"""Apple's Metal, for which torchlite has no backend."""


def is_available() -> bool:
    """Return False: torchlite has no Metal backend."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raise RuntimeError: torchlite has no Metal backend."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_built() -> bool:
    """Return False: torchlite has no Metal backend."""
    return False
