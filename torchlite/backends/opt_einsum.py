"""The package opt_einsum, which torchlite does not use: `torch.einsum` chooses its contraction order."""

from torchlite._settings.module_dir import make_module_dir

enabled, strategy = False, None


def is_available() -> bool:
    """Return False: `torch.einsum` does not use it."""
    return False


def get_opt_einsum() -> None:
    """Return None: `torch.einsum` does not use it."""
    return None


__dir__ = make_module_dir(globals())
