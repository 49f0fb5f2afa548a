"""OpenMP, which torchlite does not use."""


def is_available() -> bool:
    """Returns False: threads are Python's and those of NumPy's BLAS (`torch.set_num_threads`).

    Example:
        >>> torch.backends.openmp.is_available()
        False
    """
    return False
