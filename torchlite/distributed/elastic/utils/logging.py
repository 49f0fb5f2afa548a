"""Loggers of modules."""

from __future__ import annotations

import inspect
import logging
import os

from .log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """Returns a logger with the level of the variable ``LOGLEVEL``.

    Args:
        name: The name. Default: the module of the caller.

    Example:
        >>> from torchlite.distributed.elastic.utils.logging import get_logger
        >>> get_logger("app").name
        'app'
    """
    if name is None:
        caller = inspect.getmodule(inspect.stack()[1].frame)
        name = "" if caller is None else caller.__name__
    logger = logging.getLogger(name)
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger
