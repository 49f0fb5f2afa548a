"""The deprecated forms for the CPU."""

from ...amp._deprecated_forms import make_deprecated_forms

autocast, GradScaler, _, _ = make_deprecated_forms("cpu")
