"""The package opt_einsum, which is not used here: `torch.einsum` chooses its order of products itself."""

enabled, strategy = False, None


def is_available() -> bool:
    """False: `torch.einsum` does without it."""
    return False


def get_opt_einsum() -> None:
    """None: `torch.einsum` does without it."""
    return None
