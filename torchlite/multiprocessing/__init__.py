"""Python's `multiprocessing` where tensors travel between processes as shared memory: what one process writes the
others see. Tensors on devices, and of classes of a program's own, are copied.

>>> import torchlite as torch
>>> queue = torch.multiprocessing.SimpleQueue()
>>> x = torch.zeros(2)
>>> queue.put(x)
>>> queue.get().fill_(1)
tensor([1., 1.])
>>> x
tensor([1., 1.])
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *

from . import reductions
from .reductions import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", "ProcessContext", "ProcessException",
    "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes",
]  # fmt: skip
__all__ += multiprocessing.__all__  # type: ignore[attr-defined]

reductions.init_reductions()
