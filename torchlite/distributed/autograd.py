"""Gradients through other processes: none."""

from ._absent import absent, kind

_HERE = "torch.distributed.autograd"

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

DistAutogradContext, context = (kind(name, _HERE) for name in ("DistAutogradContext", "context"))
backward, get_gradients = (absent(name, _HERE) for name in ("backward", "get_gradients"))


def is_available() -> bool:
    """Whether gradients can come from other processes: they cannot."""
    return False
