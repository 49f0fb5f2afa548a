"""UnwritableError: what a NumPy program cannot express."""

from __future__ import annotations


class UnwritableError(ValueError):
    """Reason why a node, or a model, cannot be written as a NumPy program."""
