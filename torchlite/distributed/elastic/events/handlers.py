"""Logging handlers of events by destination."""

from __future__ import annotations

import logging

__all__ = ["get_logging_handler", "_log_handlers"]

_log_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": logging.NullHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """Returns the handler of a destination.

    Args:
        destination: The name in `_log_handlers`. Default: "null".

    Raises:
        KeyError: No handler has this name.

    Example:
        >>> from torchlite.distributed.elastic.events import get_logging_handler
        >>> type(get_logging_handler()).__name__
        'NullHandler'
    """
    return _log_handlers[destination]
