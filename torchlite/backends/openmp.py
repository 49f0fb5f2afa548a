"""OpenMP, which torchlite does not use."""


def is_available() -> bool:
    """Return False: threads are Python's and those of NumPy's BLAS (`torch.set_num_threads`)."""
    return False
