"""Where PyTorch had custom ops before `torch.library`."""

from . import impl

__all__ = ["impl"]
