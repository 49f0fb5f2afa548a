"""The package opt_einsum, which torchlite does not use: `torch.einsum` chooses its contraction order."""

from torchlite._settings.module_dir import make_module_dir

enabled, strategy = False, None


def is_available() -> bool:
    """Returns False: `torch.einsum` chooses the order of contractions itself.

    Example:
        >>> torch.backends.opt_einsum.is_available()
        False
    """
    return False


def get_opt_einsum() -> None:
    """Returns None: `torch.einsum` does not use the package opt_einsum.

    Example:
        >>> torch.backends.opt_einsum.get_opt_einsum()
    """
    return None


__dir__ = make_module_dir(globals())
