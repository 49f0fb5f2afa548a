"""MPI_Init and communicator creation with a timeout.

`MPI_Init` waits until all processes of the world have called it, without a limit, and mpi4py keeps the GIL meanwhile. A
thread therefore calls the library's function without the GIL.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .requests import Request


class MPIInit:
    """A call of `MPI_Init_thread` in a thread. It continues after `wait` timed out, and can be waited for again."""

    def __init__(self, MPI: Any) -> None:
        self._process, self._MPI = os.getpid(), MPI
        self._ended, self._why = threading.Event(), ""
        threading.Thread(target=self._run, name="torchlite MPI_Init", daemon=True).start()

    def _run(self) -> None:
        try:
            self._why = self._call_mpi_init()
        except Exception as error:  # reported by the thread that waits
            self._why = str(error)
        self._ended.set()

    def _call_mpi_init(self) -> str:
        """Initialise MPI; return the error, or ""."""
        MPI = self._MPI
        # The extension module is linked to the library. If its symbols cannot be found (Windows), mpi4py calls it.
        call = _library_function(MPI, "MPI_Init_thread")
        if call is None:
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
            return ""
        provided = ctypes.c_int()
        code = call(None, None, ctypes.c_int(MPI.THREAD_MULTIPLE), ctypes.byref(provided))
        return "" if code == MPI.SUCCESS else f"error {code}"

    def fail(self, why: str) -> None:
        """End the waiting with an error."""
        if not self._ended.is_set():
            self._why = why
            self._ended.set()

    def wait(self, limit: float | None) -> bool:
        """Wait until MPI is initialised. False after `limit` seconds, RuntimeError if that fails."""
        if self._process != os.getpid():
            raise RuntimeError("MPI does not survive a fork: start processes with the 'spawn' method")
        if not self._ended.wait(None if limit is None else min(limit, threading.TIMEOUT_MAX)):
            return False
        if self._why:
            raise RuntimeError(f"MPI_Init failed: {self._why}")
        MPI = self._MPI
        for everyone in (MPI.COMM_WORLD, MPI.COMM_SELF):  # as mpi4py does where it begins MPI
            everyone.Set_errhandler(MPI.ERRORS_RETURN)
        return True


def finalize(MPI: Any) -> None:
    """Finalize MPI without the GIL: the thread that answers MPI's library needs it."""
    call = _library_function(MPI, "MPI_Finalize")
    if call is None:
        MPI.Finalize()
    else:
        call()


def _library_function(MPI: Any, name: str) -> Any:
    return getattr(ctypes.CDLL(MPI.__file__), name, None)


class Meeting:
    """Barrier and creation of a communicator by all processes.

    Both continue after `wait` timed out, as the others may have passed them, and can be waited for again.
    """

    def __init__(self, MPI: Any) -> None:
        from .requests import Request

        self._everyone, self._made, self._request_of = MPI.COMM_WORLD, None, Request
        self._request: Request = Request(self._everyone.Ibarrier(), ())

    def wait(self, limit: float | None) -> Any:
        """Return the communicator, None after `limit` seconds."""
        begin = time.monotonic()
        if not self._request.wait(limit):
            return None
        if self._made is None:
            self._made, request = self._everyone.Idup()
            self._request = self._request_of(request, (self._made,))
        left = None if limit is None else max(limit - (time.monotonic() - begin), 0.0)
        return self._made if self._request.wait(left) else None

    def barrier(self) -> Request | None:
        """Return the barrier's request if it is in flight."""
        return self._request if self._made is None and not self._request.done() else None
