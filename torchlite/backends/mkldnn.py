"""oneDNN, which is not used here: its switches are kept, and change nothing."""

from __future__ import annotations

import contextlib

enabled, deterministic, allow_tf32 = True, False, None


def is_available() -> bool:
    """False: the CPU's kernels are NumPy's and our own."""
    return False


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """The switches for the time of a `with` block."""
    names = globals()
    before = {name: names[name] for name in ("enabled", "deterministic", "allow_tf32")}
    names.update(enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)
    try:
        yield
    finally:
        names.update(before)
