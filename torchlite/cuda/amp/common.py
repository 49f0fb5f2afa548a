"""Whether mixed precision on CUDA can work here."""

from ...amp._cuda_amp import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
