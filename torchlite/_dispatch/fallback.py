"""Kernel table entries for ops without a kernel or a composite: an error, or with `TORCHLITE_FALLBACK=1` a computation
on the host.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from .._types.devices import device
from .backend import KernelTable
from .op_record import VIEW, Op


class MissingKernel:
    """Table entry for a kernel that a backend lacks: raises an error when called."""

    def __init__(self, name: str, where: device):
        self.name, self.where = name, where

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(
            f"the op '{self.name}' has no kernel on device '{self.where}': set TORCHLITE_FALLBACK=1 to run it on the "
            f"host, move its inputs with .cpu(), or give the backend a kernel named '{self.name}'"
        )


def level_of_the_program() -> int:
    """The `stacklevel` of the first frame outside torchlite, for a warning of this function's caller."""
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]  # the backends' begins with the same word
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
        level, frame = level + 1, frame.f_back
    return level


class HostFallback:
    """In the place of a kernel that a backend lacks: runs the op on "cpu" and brings the results back."""

    def __init__(self, name: str, table: KernelTable, host: KernelTable):
        self.name, self.table, self.host = name, table, host
        self.warned = False

    def __call__(self, *args, **kwargs):
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"the op '{self.name}' has no kernel on device '{self.table.device}' and runs on the host "
                "(TORCHLITE_FALLBACK is set): every call copies its inputs and results",
                UserWarning,
                stacklevel=level_of_the_program(),
            )
        run = getattr(self.host, self.name)
        return self._to_device(
            run(*map(self._to_host, args), **{name: self._to_host(value) for name, value in kwargs.items()})
        )

    def _to_host(self, value: Any) -> Any:
        """An argument with the device's arrays as the host's."""
        if isinstance(value, self.table.array):
            return self.host.from_numpy(self.table.to_numpy(value))
        if value.__class__ in (tuple, list):
            return type(value)(map(self._to_host, value))
        return value

    def _to_device(self, value: Any) -> Any:
        """A result with the host's arrays as the device's."""
        if value is None:
            return None
        if value.__class__ in (tuple, list):
            return type(value)(map(self._to_device, value))
        return self.table.from_numpy(self.host.to_numpy(self.host.as_array(value)))


def fallback_kernel(op: Op, table: KernelTable, host) -> Any:
    """The kernel table entry for an op that the backend lacks. `host` returns the table of "cpu"."""
    wanted = os.environ.get("TORCHLITE_FALLBACK", "") not in ("", "0")
    # A view on the host would not share the device's memory.
    if (
        wanted
        and table.device.type not in ("cpu", "meta")
        and not op.tags & VIEW
        and not isinstance(getattr(host(), op.name), MissingKernel)
    ):
        return HostFallback(op.name, table, host())
    return MissingKernel(op.name, table.device)
