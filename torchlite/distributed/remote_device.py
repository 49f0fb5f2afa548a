"""Devices of other workers."""

from __future__ import annotations

from typing import Any

import torchlite as torch


class _remote_device:
    """A device of a worker: ``"worker1/cpu"``, ``"worker1"``, ``"rank:1/cuda:0"``, or a local one, ``"cpu"``."""

    def __init__(self, remote_device: str | torch.device) -> None:
        self._worker_name: str | None = None
        self._rank: int | None = None
        if isinstance(remote_device, torch.device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        wrong = ValueError(
            f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>' or "
            "'rank:<rank>/<device>' or '<device>'"
        )
        worker, slash, device = remote_device.partition("/")
        if "/" in device:
            raise wrong
        if not slash and self._is_valid_local_device(worker):
            self._device = torch.device(worker)
            return
        if not worker:
            raise wrong
        self._device = torch.device(device if slash else "cpu")
        kind, colon, number = worker.partition(":")
        if not colon:
            self._worker_name = worker
        elif kind == "rank" and number.isdigit():
            self._rank = int(number)
        else:
            raise wrong

    @staticmethod
    def _is_valid_local_device(device: Any) -> bool:
        try:
            torch.device(device)
        except RuntimeError:
            return False
        return True

    def worker_name(self) -> str | None:
        """Return the worker's name, if it was given."""
        return self._worker_name

    def rank(self) -> int | None:
        """Return the worker's rank, if it was given."""
        return self._rank

    def device(self) -> torch.device:
        """Return the device, as that worker names it."""
        return self._device

    def __repr__(self) -> str:
        if self._worker_name is not None:
            return f"{self._worker_name}/{self._device}"
        return str(self._device) if self._rank is None else f"rank:{self._rank}/{self._device}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self._worker_name, self._rank, self._device
