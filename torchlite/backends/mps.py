"""Apple's Metal: there is no backend for it."""


def is_available() -> bool:
    """False: there is no backend for Metal."""
    return False


def is_built() -> bool:
    """False: there is no backend for Metal."""
    return False
