"""Mixed precision on the CPU under its old names, deprecated in favour of `torch.amp`."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
