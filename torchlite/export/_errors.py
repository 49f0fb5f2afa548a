"""What is wrong with a program or with how its export is asked for."""

from __future__ import annotations

from torchlite._dynamo.exc import UserError

__all__ = ["UserError"]
