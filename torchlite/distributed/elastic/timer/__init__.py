"""Timers that end a process which does not leave a block of its program in time.

The process asks by a client: `configure` sets it, and `expires` is the block. A server in the agent's process ends
those whose time is over. `LocalTimerServer` is asked through a queue of `multiprocessing`, `FileTimerServer` through a
named pipe.
"""

from . import api as api
from . import file_based_local_timer as file_based_local_timer
from . import local_timer as local_timer
from .api import TimerClient, TimerRequest, TimerServer, configure, expires
from .file_based_local_timer import FileTimerClient, FileTimerRequest, FileTimerServer
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "FileTimerClient", "FileTimerRequest", "FileTimerServer", "LocalTimerClient", "LocalTimerServer", "TimerClient",
    "TimerRequest", "TimerServer", "configure", "expires",
]  # fmt: skip
