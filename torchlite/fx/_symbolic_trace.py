"""Tracing, by the name of PyTorch's module."""

from .proxy import Tracer, symbolic_trace, wrap

__all__ = ["Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]


def is_fx_tracing() -> bool:
    """Whether a program is being traced: never."""
    return False


is_fx_symbolic_tracing = is_fx_tracing
