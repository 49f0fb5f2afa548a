"""Temporary files that are removed when their process ends, even by a signal.

All named files of a process are in one private folder in each location (the temporary folder, shared memory). The
folder is removed when the process ends: by the process, or by a small shell that waits for the end of a pipe that only
this process holds, which covers SIGTERM and SIGKILL. The shell removes the folder that it was started for and reads no
names: an attacker who takes over a process that dropped its privileges cannot make root's shell remove other folders.
If the shell was killed too, the next process of the same user removes the folder: its owner has a lock on it (`flock`),
which the system releases with the process, so that a reused process id or one of another container is not mistaken for
the owner.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator

from . import fork_locks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "torchlite-process-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-z_]{8}")
_MAX_PATH = 88  # characters of a folder in which sockets get names: a socket's path has about a hundred
_SCRIPT = """exec 3<&0; { while read -r x; do :; done; rm -rf -- "$1"; } <&3 &"""
_lock = fork_locks.acquire_before_fork(threading.RLock())


class _Folders:
    """The folders of this process by location and user, and the descriptors that it holds open for them."""

    def __init__(self) -> None:
        self.by_place, self.descriptors = dict[tuple[str, int], str](), list[int]()

    def forget(self) -> None:
        """In a forked child: the folders are its parent's."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def add(self, place: str, user: int) -> str:
        folder, locked = _make_locked_folder(place)
        if locked >= 0:
            self.descriptors.append(locked)
        self.by_place[place, user] = folder
        import multiprocessing.util as util

        # After multiprocessing's own farewells (0 and -100), which remove sockets in the folder.
        util.Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=-200)  # type: ignore[attr-defined]
        if os.name == "posix":
            with contextlib.suppress(OSError):  # then the next process clears the folder
                self.descriptors.append(_start_remover(folder))
        return folder


_folders = _Folders()


def _reset_after_fork() -> None:
    global _folders
    _folders.forget()
    _folders = _Folders()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def process_folder(place: str = "") -> str:
    """This process's private folder in a location, by default the temporary folder. A process that changes its user
    gets a new one. OSError if none can be created.
    """
    place = place or tempfile.gettempdir()
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    with _lock:
        folder = _folders.by_place.get((place, user))
        if folder is None or not os.path.isdir(folder):
            remove_abandoned(place)
            folder = _folders.add(place, user)
        return folder


def shared_memory_folder() -> str:
    """Folder for files in memory; the temporary folder on systems without one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def _make_locked_folder(place: str) -> tuple[str, int]:
    """A new folder and the descriptor that locks it; -1 where the system has no such locks."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        if fcntl is None:
            return folder, -1
        with contextlib.suppress(FileNotFoundError):  # another process took it for abandoned before it was locked
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.isdir(folder):
                return folder, descriptor
            os.close(descriptor)


def _start_remover(folder: str) -> int:
    """Start the shell that removes a folder; the descriptor that it waits for until this process ends."""
    import subprocess

    theirs, ours = os.pipe()
    try:
        # In the background and in a new session: it is not this process's child, and gets none of its signals. It
        # inherits no descriptor but the pipe's: others would stay open in it.
        command = ["sh", "-c", _SCRIPT, "sh", folder]
        nothing = subprocess.DEVNULL
        subprocess.run(
            command, executable="/bin/sh", check=False, stdin=theirs, stdout=nothing, stderr=nothing,
            start_new_session=True,
        )  # fmt: skip
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ours


def remove_abandoned(place: str = "") -> None:
    """Remove the folders in a place that processes of this user left which have ended."""
    place = place or tempfile.gettempdir()
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            if _NAME.fullmatch(name):
                with contextlib.suppress(OSError), _lock_abandoned_folder(os.path.join(place, name)) as folder:
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock_abandoned_folder(folder: str) -> Iterator[str]:
    """A folder of this user, locked; OSError where it is another's, no folder, or in use."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
            raise PermissionError(f"{folder} belongs to somebody else")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        os.close(descriptor)


def use_for_multiprocessing() -> None:
    """Have Python's `multiprocessing` make its sockets in this process's folder: its own folder stays when the process
    is killed.
    """
    if os.name != "posix":
        return
    import multiprocessing.process as process

    config = process.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        with contextlib.suppress(OSError):
            folder = process_folder()
            if len(folder) <= _MAX_PATH:
                config["tempdir"] = folder
