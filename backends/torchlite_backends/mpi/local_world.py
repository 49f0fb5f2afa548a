"""MPI world on one machine for processes not started by MPI's launcher, for example by `multiprocessing`.

A process needs from its launcher only an open socket to the process manager, and environment variables. Rank 0
therefore makes `mpiexec` start as many proxy programs. Each passes its socket and variables to the process of its rank
through a Unix socket in a private folder, and waits for that process's end.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from torchlite._settings import cache_files
from torchlite._settings.mpich_shared_memory import clear_shared_memory


def join_world(rank: int, size: int, meeting: str, limit: float) -> tuple[dict[str, str], subprocess.Popen | None]:
    """Return the variables that make this process `rank` of `size`, and `mpiexec` on the first rank.

    All processes with the same `meeting` form one world. TimeoutError if they have not all joined within `limit`
    seconds, RuntimeError if `mpiexec` is missing or fails.
    """
    deadline = time.monotonic() + limit
    start = os.path.join(_ensure_private_folder(), hashlib.sha256(meeting.encode()).hexdigest()[:16])
    own = f"{start}-{rank}"
    listener = _listen_as_rank(own, rank)
    try:
        process = None
        if rank == 0:
            _wait_for_ranks(start, size, deadline)
            clear_shared_memory()
            process = _launch_mpiexec(size, start, limit)
        connection, words, descriptors = _receive_environment(listener, process, size, deadline)
    finally:
        listener.close()
        os.unlink(own)
    # Open as long as this process lives: the proxy ends with it. MPI finalizes after Python has cleared modules and
    # closed sockets, so the socket is detached from Python.
    connection.detach()
    found = dict(item.split("=", 1) for item in words.split("\0"))
    if descriptors:
        found["PMI_FD"] = str(descriptors[0])
    return found, process


def _ensure_private_folder() -> str:
    """Return a folder that nobody else can write to."""
    folder = os.path.join(tempfile.gettempdir(), f"torchlite-mpi-{os.geteuid()}")
    why = ""
    try:
        with cache_files.open_folder(folder, make=True) as descriptor:
            about = os.fstat(descriptor)
    except cache_files.NotTrustedError as error:
        why = f": {error}"
    if why or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise RuntimeError(f"{folder} must be a folder that its owner alone may use{why}")
    return folder


def _listen_as_rank(path: str, rank: int) -> socket.socket:
    taken = RuntimeError(
        f"another process of this machine waits to be rank {rank} of the same world ({path}): give each process a rank "
        "of its own, or take another port"
    )
    if _is_listening(path):
        raise taken
    if os.path.lexists(path):  # of a process that was killed
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError:  # two processes started at the same time
        listener.close()
        raise taken from None
    listener.listen()
    return listener


def _is_listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _wait_for_ranks(start: str, size: int, deadline: float) -> None:
    """Wait until all ranks listen: MPI itself would wait for them without a limit."""
    missing = list(range(1, size))
    while missing:
        missing = [rank for rank in missing if not _is_listening(f"{start}-{rank}")]
        if missing and time.monotonic() > deadline:
            raise TimeoutError(f"the ranks {missing} of {size} did not come")
        time.sleep(0.01 if missing else 0)


def _launch_mpiexec(size: int, start: str, limit: float) -> subprocess.Popen:
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    program = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if program is None:
        raise RuntimeError("mpiexec is missing: pip install 'torchlite-nd[mpi]' brings it")
    proxy = os.path.join(os.path.dirname(__file__), "mpiexec_proxy.py")
    command = [program, "-n", str(size), sys.executable, "-I", "-S", proxy, start, str(limit)]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def _receive_environment(
    listener: socket.socket, process: subprocess.Popen | None, size: int, deadline: float
) -> tuple[socket.socket, str, list[int]]:
    """Return the proxy's message. Other clients only probe whether this process exists."""
    listener.settimeout(0.1)
    while True:
        try:
            connection = listener.accept()[0]
        except TimeoutError:
            if process is not None and process.poll() is not None:
                raise RuntimeError(f"mpiexec ended before it had started {size} processes") from None
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all of the {size} processes came") from None
            continue
        connection.settimeout(None)
        words, descriptors, *_ = socket.recv_fds(connection, 65536, 4)
        if words:
            return connection, words.decode(), descriptors
        connection.close()
