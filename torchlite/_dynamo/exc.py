"""What is wrong with a program that is captured."""

from __future__ import annotations

from typing import Any

__all__ = ["FailOnRecompileLimitHit", "InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """An error of a capture."""


class Unsupported(TorchDynamoException):
    """What cannot be captured."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function was captured as often as it may be, and that was to be an error."""


class NotYet(Unsupported):
    """What cannot be captured now, but may be later."""


class UserError(Unsupported):
    """A capture that was asked for wrongly."""

    def __init__(self, msg: str, error_type: Any = None) -> None:
        super().__init__(msg)
        self.error_type = error_type


class InvalidBackend(TorchDynamoException):
    """A compiler that there is not."""

    def __init__(self, name: Any) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")
