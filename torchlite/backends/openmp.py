"""OpenMP, which is not used here."""


def is_available() -> bool:
    """False: threads are Python's and those of NumPy's BLAS (`torch.set_num_threads`)."""
    return False
