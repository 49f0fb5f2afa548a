"""State of `torch.compiler`, per thread and per process: set by `torch.compiler`, read by `torchlite._dynamo`."""

from __future__ import annotations

import threading
from typing import Any


class ThreadState(threading.local):
    """Compiler state of each thread."""

    exports = 0  # that it is inside of
    captures = 0  # calls that are recorded
    stance = "default"
    optimizes_loaded = True  # whether calls of loaded modules are optimized (`torch.jit.optimized_execution`)
    programs: list[str] | None = None  # sources of the programs that `torch._inductor.utils.run_and_get_code` collects
    fails: Any = None  # whether a graph break is an error; None: the compiled function's own option


class ProcessState:
    """Compiler state of the process."""

    backend: Any = "inductor"
    logs: frozenset[str] = frozenset()  # what compilers tell of their work
    allowed: dict[int, Any] = {}  # functions of C's that are taken for ones that only compute
    inductor_config: Any = None  # the module `torch._inductor.config`, once it is loaded
    collectives = False  # whether processes agree before one compiles again


THREAD_STATE, PROCESS_STATE = ThreadState(), ProcessState()
