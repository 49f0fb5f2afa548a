"""Gradient scaling on CUDA under its old name."""

from ...amp._cuda_amp import GradScaler

__all__ = ["GradScaler"]
