"""Exceptions of `torch.export`."""

from torchlite._dynamo.exc import UserError

__all__ = ["UserError"]
