"""Mixed precision on the CPU under its old names, deprecated in favour of `torch.amp`."""

from ..amp._deprecated_forms import deprecated_forms

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler, _, _ = deprecated_forms("cpu")
