"""The level of loggers without one."""

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """Returns the level of loggers without one.

    Example:
        >>> from torchlite.distributed.elastic.utils.log_level import get_log_level
        >>> get_log_level()
        'WARNING'
    """
    return "WARNING"
