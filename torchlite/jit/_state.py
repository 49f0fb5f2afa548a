"""What a thread traces or scripts."""

from __future__ import annotations

import threading
from typing import Any


class TracerWarning(Warning):
    """What tracing warns of."""


class _State(threading.local):
    recorder: Any = None  # what writes the run down
    inside = False  # whether an op that was written down runs
    scripting = 0  # how many programs that Python runs are being run


STATE = _State()
