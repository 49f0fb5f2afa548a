"""Mixed precision on CUDA under its old names, deprecated in favour of `torch.amp`."""

from ...amp._cuda_amp import GradScaler, amp_definitely_not_available, autocast, custom_bwd, custom_fwd

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
