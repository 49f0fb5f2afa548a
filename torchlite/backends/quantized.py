"""The engine of quantized ops by name. torchlite's kernels serve all of them alike."""

from __future__ import annotations

import sys

from .._settings.backend_flags import FLAGS
from .._settings.importable_module import ImportableModule

_ENGINES = ("qnnpack", "onednn", "x86", "fbgemm")


class _Quantized(ImportableModule):
    @property
    def engine(self) -> str:
        """The engine's name: "x86" by default. RuntimeError for a name that is not an engine's."""
        return FLAGS.quantized_engine

    @engine.setter
    def engine(self, value: str) -> None:
        if value not in (*_ENGINES, "none", "", None):
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        FLAGS.quantized_engine = value or "none"

    @property
    def supported_engines(self) -> list[str]:
        """The names of the engines."""
        return list(_ENGINES)

    @supported_engines.setter
    def supported_engines(self, value: list[str]) -> None:
        raise RuntimeError("Assignment not supported")


sys.modules[__name__].__class__ = _Quantized
