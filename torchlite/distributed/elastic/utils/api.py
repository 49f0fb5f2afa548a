"""Variables of the environment, free ports, and names that are replaced in arguments."""

from __future__ import annotations

import os
import socket
from string import Template
from typing import Any

from .distributed import get_socket_with_port as _get_socket_with_port

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """Returns a variable of the environment.

    Args:
        env_name: The name.

    Raises:
        ValueError: It is not set.

    Example:
        >>> from torchlite.distributed.elastic.utils import get_env_variable_or_raise
        >>> get_env_variable_or_raise("ABSENT_VARIABLE")
        Traceback (most recent call last):
        ValueError: Environment variable ABSENT_VARIABLE expected, but not set
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """Returns a socket that is bound to a free port of this machine. It is closed before another takes the port.

    Example:
        >>> from torchlite.distributed.elastic.utils import get_socket_with_port
        >>> with get_socket_with_port() as found:
        ...     found.getsockname()[1] > 0
        True
    """
    return _get_socket_with_port()


class macros:
    """Names in the arguments of a process that are replaced.

    Example:
        >>> from torchlite.distributed.elastic.utils import macros
        >>> macros.substitute(["--rank", macros.local_rank], "3")
        ['--rank', '3']
    """

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[Any]:
        """Returns arguments with the number of a process in the place of its name.

        Args:
            args: The arguments. Those that are no text stay.
            local_rank: The number of the process on its machine.
        """
        return [Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg for arg in args]
