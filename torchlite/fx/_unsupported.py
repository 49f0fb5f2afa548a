"""Error message for unsupported features of torch.fx."""

from __future__ import annotations


def unsupported_error(name: str) -> NotImplementedError:
    """Return the error of a torch.fx class or function that is not supported."""
    return NotImplementedError(f"torch.fx.{name}: torchlite does not trace programs yet")
