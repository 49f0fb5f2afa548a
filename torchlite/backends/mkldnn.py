"""oneDNN, which is not used here: its switches are kept, and change nothing."""

enabled, deterministic, allow_tf32 = True, False, None


def is_available() -> bool:
    """False: the CPU's kernels are NumPy's and our own."""
    return False
