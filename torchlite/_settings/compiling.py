"""What was said about the compiler: plain state, which `torch.compiler` sets and `torchlite._dynamo` reads."""

from __future__ import annotations

import threading
from typing import Any


class Thread(threading.local):
    """Of each thread."""

    exports = 0  # that it is inside of
    stance = "default"


class Process:
    """Of the process."""

    backend: Any = "inductor"
    collectives = False  # whether processes agree before one compiles again


THREAD, PROCESS = Thread(), Process()
