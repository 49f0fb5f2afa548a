"""File input, and atomic replacement of files on output."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl: Any = None  # type: ignore[no-redef]


_TEMPORARY = ".torchlite-tmp-"  # prefix of temporary file names, short enough for every valid name


def open_regular(path: Any, mode: str = "rb") -> Any:
    """Open a regular file for reading ("rb", or "r+b" to map it). RuntimeError for a pipe, a socket or a device, which
    would block or be endless; OSError if there is no such file, or for a folder.
    """
    _check_mode(os.stat(path).st_mode, path)
    flags = os.O_RDWR if "+" in mode else os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags)
    try:
        _check_mode(os.fstat(handle).st_mode, path)  # another file may have the name by now
        return open(path, mode, opener=lambda *_: handle)
    except BaseException:
        os.close(handle)
        raise


def check_regular(stream: Any) -> Any:
    """Return an open file. RuntimeError if it is a pipe, a socket, or a device that claims to be seekable."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError, TypeError):  # no file of the system
        return stream
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        _check_mode(mode, getattr(stream, "name", stream))
    return stream


def _check_mode(mode: int, path: Any) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        tests = {"pipe": stat.S_ISFIFO, "socket": stat.S_ISSOCK}
        kind = next((kind for kind, test in tests.items() if test(mode)), "device")
        raise RuntimeError(f"{str(path)[:1000]} is a {kind}, no file that can be loaded")


def _write_error(number: int, path: str, plain: bool) -> Exception:
    """Return the error of a failed write: OSError if `plain`, else RuntimeError with PyTorch's message."""
    if plain:
        return OSError(number, os.strerror(number), path)
    return RuntimeError(
        f"[enforce fail at inline_container.cc] . open file failed with strerror: {os.strerror(number)}: {path}"
    )


def _try_lock(handle: int, wait: bool) -> bool:
    """Lock a file until its process ends or closes it. False if another process has the lock, or locks are not
    supported.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_stale(folder: str) -> None:
    """Remove the temporary files of killed saves to a folder: those that no process has locked."""
    with contextlib.suppress(OSError):
        for name in [entry for entry in os.listdir(folder) if entry.startswith(_TEMPORARY)]:
            with contextlib.suppress(OSError):
                _remove_if_stale(os.path.join(folder, name))


def _remove_if_stale(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        if _try_lock(handle, wait=False):
            os.unlink(path)
    finally:
        os.close(handle)


def _create_temporary(folder: str) -> tuple[int, str]:
    """Create a temporary file, locked by this process."""
    while True:
        path = os.path.join(folder, f"{_TEMPORARY}{os.urandom(8).hex()}")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if fcntl is not None:
            _try_lock(handle, wait=True)
            if not os.path.exists(path):  # another save removed it as abandoned before the lock
                os.close(handle)
                continue
        return handle, path


def _copy_ownership(temporary: str, found: os.stat_result) -> bool:
    """Copy the owner and mode of a file to another; False if that fails."""
    if os.name == "posix":
        new = os.stat(temporary)
        if (new.st_uid, new.st_gid) != (found.st_uid, found.st_gid):
            try:
                os.chown(temporary, found.st_uid, found.st_gid)
            except OSError:
                return False
    os.chmod(temporary, found.st_mode & 0o7777)
    return True


def _stat_existing(path: str, plain: bool) -> os.stat_result | None:
    """Return the stat of the existing file, or None. `_write_error` if it cannot be written."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _write_error(error.errno or errno.EIO, path, plain) from None
    if stat.S_ISDIR(found.st_mode):
        raise _write_error(errno.EISDIR, path, plain)
    if not os.access(path, os.W_OK):
        raise _write_error(errno.EACCES, path, plain)
    return found


@contextlib.contextmanager
def replace_file(path: str, plain: bool = False) -> Iterator:
    """Context manager: a binary file that replaces `path` if the block succeeds. After a failure the old file is
    unchanged.

    Targets that cannot be replaced are written in place: pipes, devices, files in read-only folders. Files with hard
    links, or with an owner that a new file cannot have, are copied into at the end. If there is no such folder, or the
    file cannot be opened: RuntimeError with PyTorch's message, or OSError if `plain`. A full or failing disk is always
    an OSError.
    """
    requested, path = path, os.path.realpath(path)
    folder = os.path.dirname(path)
    found = _destination(requested, path, folder, plain)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with open(path, "wb") as stream:
            yield stream
        return
    _remove_stale(folder)
    try:
        handle, temporary = _create_temporary(folder)
    except OSError as error:
        if found is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise _write_error(error.errno or errno.EIO, path, plain) from None
        with open(path, "wb") as stream:
            yield stream
        return
    moved = False
    try:
        with open(handle, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if found is None or found.st_nlink == 1 and _copy_ownership(temporary, found):
                if fcntl is not None:  # while it is locked: no other save may remove it as abandoned
                    os.replace(temporary, path)
                    moved = True
            else:
                _copy_into(stream, path)
                os.unlink(temporary)
                moved = True
        if not moved:
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _destination(wanted: str, path: str, folder: str, plain: bool) -> os.stat_result | None:
    """Return the stat of the file at a path (as given, and with links resolved), or None; an error if no file can be
    there.
    """
    if not os.path.basename(wanted):
        if plain:
            raise _write_error(errno.EISDIR if wanted else errno.ENOENT, wanted, plain)
        raise RuntimeError(f"[enforce fail at inline_container.cc] . invalid file name: {wanted}")
    if not os.path.isdir(folder):
        if plain or os.path.islink(wanted):
            raise _write_error(errno.ENOENT, wanted, plain)
        raise RuntimeError(f"Parent directory {os.path.dirname(wanted)} does not exist.")
    found = _stat_existing(path, plain)
    if found is None and len(os.fsencode(os.path.basename(path))) > 255:
        raise _write_error(errno.ENAMETOOLONG, path, plain)
    return found


def _copy_into(stream, path: str) -> None:
    """Copy a complete file into an existing file, which is not replaced."""
    stream.seek(0)
    with open(path, "r+b") as target:
        while chunk := stream.read(1 << 22):
            target.write(chunk)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())


def _sync_folder(folder: str) -> None:
    """Make the new name durable, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
