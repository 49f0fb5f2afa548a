"""Mixed precision on the CPU by its old names, deprecated in favour of `torch.amp`."""

from __future__ import annotations

from ..amp._older import forms

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler, _, _ = forms("cpu")
