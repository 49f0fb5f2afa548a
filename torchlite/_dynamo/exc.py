"""What is wrong with a program that is captured."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend",
    "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip


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


class BackendCompilerFailed(TorchDynamoException):
    """A compiler of a program's own raised an error, which is the cause and `inner_exception`."""

    def __init__(self, backend_fn: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class TorchRuntimeError(TorchDynamoException):
    """An error of an op while a function is captured. Here the op's own error comes instead, for what is captured runs
    as it is written: the name is for programs that catch it.
    """


class InternalTorchDynamoError(TorchDynamoException):
    """An error of the compiler's own; a name for programs that catch it, as `TorchRuntimeError`."""
