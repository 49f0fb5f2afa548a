"""XNNPACK, which torchlite does not use."""

from __future__ import annotations

import sys
import types


class _Xnnpack(types.ModuleType):
    @property
    def enabled(self) -> bool:
        """False. RuntimeError for an assignment."""
        return False

    @enabled.setter
    def enabled(self, value: bool) -> None:
        raise RuntimeError("Assignment not supported")


sys.modules[__name__].__class__ = _Xnnpack
