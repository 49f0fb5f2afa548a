"""PyTorch's names of the server of a rank's handlers."""

from ..distributed._worker_server import (
    _get_handler,
    _get_handler_names,
    _register_handler,
    _Request,
    _Response,
    _WorkerServer,
)

__all__ = [
    "_Request", "_Response", "_WorkerServer", "_get_handler", "_get_handler_names", "_register_handler"
]  # fmt: skip
