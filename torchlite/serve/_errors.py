"""Errors that a server answers: one class for each kind, with its codes in HTTP, gRPC and TorchServe's API."""

from __future__ import annotations


class ServeError(Exception):
    """Error that a client gets as an answer."""

    status = 500
    grpc_code = "INTERNAL"
    kind = "InternalServerException"  # TorchServe's name
    reason = "internal"  # label of the metric
    retry_after: float | None = None  # seconds


class InvalidRequest(ServeError):
    """The request is not of the protocol, or does not fit the model."""

    status, grpc_code, kind, reason = 400, "INVALID_ARGUMENT", "BadRequestException", "invalid"


class Unauthorized(ServeError):
    """The request has no token, or a wrong one."""

    status, grpc_code, kind, reason = 401, "UNAUTHENTICATED", "InvalidKeyException", "unauthorized"


class Forbidden(ServeError):
    """The server does not do this for anybody."""

    status, grpc_code, kind, reason = 403, "PERMISSION_DENIED", "ForbiddenException", "forbidden"


class UnknownModel(ServeError):
    """There is no such model or version."""

    status, grpc_code, kind, reason = 404, "NOT_FOUND", "ModelNotFoundException", "unknown"


class SlowClient(ServeError):
    """The body did not arrive in time."""

    status, grpc_code, kind, reason = 408, "DEADLINE_EXCEEDED", "RequestTimeoutException", "slow_client"


class Conflict(ServeError):
    """The model is there already."""

    status, grpc_code, kind, reason = 409, "ALREADY_EXISTS", "ConflictStatusException", "conflict"


class TooLarge(ServeError):
    """A body or tensor is over the limit."""

    status, grpc_code, kind, reason = 413, "RESOURCE_EXHAUSTED", "RequestEntityTooLargeException", "too_large"


class WrongEncoding(ServeError):
    """The body has an encoding or type that the server does not read."""

    status, grpc_code, kind, reason = 415, "INVALID_ARGUMENT", "UnsupportedMediaTypeException", "encoding"


class Busy(ServeError):
    """The queue is full."""

    status, grpc_code, kind, reason = 429, "RESOURCE_EXHAUSTED", "ServiceUnavailableException", "busy"

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Unavailable(ServeError):
    """The model or the server does not take requests now."""

    status, grpc_code, kind, reason = 503, "UNAVAILABLE", "ServiceUnavailableException", "unavailable"


class DeadlineExceeded(ServeError):
    """The answer was not ready in time."""

    status, grpc_code, kind, reason = 504, "DEADLINE_EXCEEDED", "InferenceTimeoutException", "deadline"


class ModelFailed(ServeError):
    """Code of the model raised an error."""

    reason = "model"


class RowsMixed(ModelFailed):
    """The model's rows are not independent: requests to it cannot be joined."""
