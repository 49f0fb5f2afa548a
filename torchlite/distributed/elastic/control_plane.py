"""Server of a rank's handlers on a Unix socket, for operators: `worker_main`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from torchlite._settings.module_dir import make_module_dir

from .multiprocessing.errors import recorded

__all__ = ["worker_main"]

TORCH_WORKER_SERVER_SOCKET = "TORCH_WORKER_SERVER_SOCKET"


@contextlib.contextmanager
def _worker_server(socket_path: str) -> Iterator[None]:
    from .._worker_server import _WorkerServer

    server = _WorkerServer(socket_path)
    try:
        yield
    finally:
        server.shutdown()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path)


@contextlib.contextmanager
def worker_main() -> Iterator[None]:
    """Context or decorator of a program's main function: its error is recorded, and its handlers are served.

    The error goes to the launcher's error file, as by `torch.distributed.elastic.multiprocessing.errors.record`. If the
    variable ``TORCH_WORKER_SERVER_SOCKET`` is set, an HTTP server listens on a Unix socket of that path. ``GET
    /handler/`` lists the names of its handlers. ``POST /handler/ping`` answers ``pong``, and ``POST
    /handler/dump_traceback`` answers what all threads run.

    Raises:
        RuntimeError: The path exists.

    Example:
        >>> from torchlite.distributed.elastic.control_plane import worker_main
        >>> @worker_main()
        ... def main():
        ...     return 3
        >>> main()
        3
    """
    path = os.environ.get(TORCH_WORKER_SERVER_SOCKET)
    with recorded(), contextlib.nullcontext() if path is None else _worker_server(path):
        yield


__dir__ = make_module_dir(globals(), "TORCH_WORKER_SERVER_SOCKET")
