"""Intel's MKL: true if NumPy's products use it."""


def is_available() -> bool:
    """True if NumPy was built with MKL."""
    import numpy as np

    blas = (np.show_config(mode="dicts") or {}).get("Build Dependencies", {}).get("blas", {})
    return "mkl" in str(blas.get("name", "")).lower()
