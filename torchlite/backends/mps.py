"""Apple's Metal, for which torchlite has no backend."""


def is_available() -> bool:
    """False: there is no backend for Metal."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """RuntimeError: there is no backend for Metal."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_built() -> bool:
    """False: there is no backend for Metal."""
    return False
