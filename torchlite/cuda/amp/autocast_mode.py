"""Autocast on CUDA under its old name."""

from ...amp._cuda_amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
