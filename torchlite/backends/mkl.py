"""Intel's MKL: true if NumPy's products use it."""


def is_available() -> bool:
    """Returns whether NumPy was built with MKL.

    Example:
        >>> torch.backends.mkl.is_available() in (True, False)
        True
    """
    import numpy as np

    blas = (np.show_config(mode="dicts") or {}).get("Build Dependencies", {}).get("blas", {})
    return "mkl" in str(blas.get("name", "")).lower()
