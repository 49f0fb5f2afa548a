"""Per-thread flags of tracing and of scripted functions: plain state, which `torch.jit` sets."""

from __future__ import annotations

import threading
from typing import Any


class _State(threading.local):
    recorder: Any = None  # what writes down the run of this thread, while it is traced
    inside = False  # whether an op runs that was written down
    tracing: Any = None  # the scopes of the run that `torch.jit._get_trace_graph` records
    scripting = 0  # how many scripted functions run inside each other


STATE = _State()
