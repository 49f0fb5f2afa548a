"""Exceptions of `torch.compile`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend",
    "RecompileError", "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """Base class of the compiler's errors."""


class Unsupported(TorchDynamoException):
    """The function uses something that cannot be captured."""


class FailOnRecompileLimitHit(Exception):
    """A function reached its recompile limit, and `fail_on_recompile_limit_hit` or `fullgraph` makes this an error."""


class RecompileError(TorchDynamoException):
    """A recorded function needs another recording, which `error_on_recompile` makes an error."""


class NotYet(Unsupported):
    """The call cannot be captured now, but may be later."""


class UserError(Unsupported):
    """The user's code uses the compiler incorrectly."""

    def __init__(self, msg: str, error_type: Any = None) -> None:
        super().__init__(msg)
        self.error_type = error_type


class InvalidBackend(TorchDynamoException):
    """Unknown compiler backend."""

    def __init__(self, name: Any) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """A custom backend raised an error, which is the cause and `inner_exception`."""

    def __init__(self, backend_fn: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class TorchRuntimeError(TorchDynamoException):
    """An op failed while a function was captured. Kept for compatibility: torchlite raises the op's error."""


class InternalTorchDynamoError(TorchDynamoException):
    """Internal compiler error. Kept for compatibility, as `TorchRuntimeError`."""
