"""Exceptions of `torch.export`."""

from __future__ import annotations

from torchlite._dynamo.exc import UserError

__all__ = ["UserError"]
