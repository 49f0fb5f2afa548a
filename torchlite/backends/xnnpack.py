"""XNNPACK, which torchlite does not use."""

from __future__ import annotations

import sys

from .._settings.importable_module import ImportableModule


class _Xnnpack(ImportableModule):
    @property
    def enabled(self) -> bool:
        """False. RuntimeError for an assignment."""
        return False

    @enabled.setter
    def enabled(self, value: bool) -> None:
        raise RuntimeError("Assignment not supported")


sys.modules[__name__].__class__ = _Xnnpack
