"""The package opt_einsum, which torchlite does not use: `torch.einsum` chooses its contraction order."""

enabled, strategy = False, None


def is_available() -> bool:
    """False: `torch.einsum` does without it."""
    return False


def get_opt_einsum() -> None:
    """None: `torch.einsum` does without it."""
    return None
