"""torch.signal: windows for signal processing."""

from . import windows

__all__ = ["windows"]
