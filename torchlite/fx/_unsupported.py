"""The sentence of what is not there yet."""

from __future__ import annotations


def unsupported_error(name: str) -> NotImplementedError:
    """The error of a class or function of torch.fx that would need a trace."""
    return NotImplementedError(f"torch.fx.{name}: torchlite does not trace programs yet")
