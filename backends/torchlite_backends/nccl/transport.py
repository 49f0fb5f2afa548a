"""NCCL transport: availability and groups."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from .communicator import Communicator, translate_errors, unique_id_to_bytes


class NCCLTransport:
    """Transport of messages over NCCL."""

    name = "nccl"

    def is_installed(self) -> bool:
        """True if CuPy is installed; does not import it."""
        return importlib.util.find_spec("cupy") is not None

    def why_not(self) -> str:
        """Return why NCCL is not available, or ""."""
        if not self.is_installed():
            return "CuPy is missing: install it with pip install 'torchlite-nd[cuda12]'"
        try:
            nccl = importlib.import_module("cupy.cuda.nccl")
        except ImportError as error:
            return f"NCCL is missing: install it with pip install nvidia-nccl-cu12 ({error})"
        if not getattr(nccl, "available", True):
            return "NCCL is missing: install it with pip install nvidia-nccl-cu12"
        return ""

    def version(self) -> tuple[int, int, int]:
        """Return NCCL's version: 21805 is 2.18.5."""
        number = self._import_nccl().get_version()
        return number // 10000, number // 100 % 100, number % 100

    def identity(self) -> bytes:
        """Create the unique id of a new group on one rank; all ranks need it."""
        with translate_errors():
            return unique_id_to_bytes(self._import_nccl().get_unique_id())

    def group(self, size: int, rank: int, identity: bytes) -> Communicator:
        """Return a group on the current device; waits until all members have called this."""
        return Communicator(self._import_nccl(), size, identity, rank)

    def _import_nccl(self) -> Any:
        return importlib.import_module("cupy.cuda.nccl")
