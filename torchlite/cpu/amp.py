"""Mixed precision on the CPU under its old names, deprecated in favour of `torch.amp`."""

from ..amp._deprecated_forms import make_deprecated_forms

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler, _, _ = make_deprecated_forms("cpu")
