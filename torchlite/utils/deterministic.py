"""Uninitialised memory under `torch.use_deterministic_algorithms`. `fill_uninitialized_memory` (True by default):
`torch.empty`, `resize_` and the like fill their memory with NaN, or with the largest integer.

>>> import torchlite as torch
>>> torch.utils.deterministic.fill_uninitialized_memory
True
"""

from __future__ import annotations

import sys

from torchlite._settings.module_dir import make_module_dir

from .._settings.backend_flags import FLAGS
from .._settings.importable_module import ImportableModule


class _Module(ImportableModule):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """True if memory that is not set is filled in deterministic mode."""
        return FLAGS.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        FLAGS.fill_uninitialized_memory = bool(mode)


sys.modules[__name__].__class__ = _Module


__dir__ = make_module_dir(globals())
