"""Files that later processes load again: compiled kernels, and what was measured of drivers and forms.

A cache holds code that runs, so it takes nothing that another user could have written. Every folder from the cache's
root down, and the file itself, must belong to this user or to root and must not be writable by group or others. A
folder is opened once and then used by its descriptor, so that what was checked is what is used. Folders are made with
mode 0700 and files with 0600, whatever the umask. Systems without user ids (Windows) rely on the profile's permissions.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import stat
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

PART = ".part"  # how the names of unfinished files and folders end
_ABANDONED = 600  # seconds after which nobody writes a file any more
_BY_DESCRIPTOR = hasattr(os, "geteuid") and os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FILE = (
    os.O_RDONLY | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotTrustedError(PermissionError):
    """A folder or a file of the cache that another user could have written."""


def base() -> tuple[str, bool]:
    """The folder that holds the cache's own folder `torchlite`, and whether the user named it for this alone
    (`TORCHLITE_CACHE_DIR`).
    """
    named = os.environ.get("TORCHLITE_CACHE_DIR")
    if named:
        return os.path.abspath(named), True
    shared = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.abspath(shared), False


def root() -> Path:
    """The cache's own folder."""
    return Path(base()[0]) / "torchlite"


def _steps(folder: Path) -> tuple[str, list[str], bool]:
    """The folder to start at, the names below it, and whether the start itself is checked. A folder outside the cache
    is its own start.
    """
    start, named = base()
    with contextlib.suppress(ValueError):
        return start, list(Path(os.path.abspath(folder)).relative_to(start).parts), named
    return os.path.abspath(folder), [], True


def _refuse(path: str, why: str) -> None:
    raise NotTrustedError(f"{path} {why}, so that it may hold code of other users")


def _check(about: os.stat_result, path: str, sticky: bool = False) -> None:
    """NotTrustedError unless only this user or root can write here. A `sticky` folder may be writable by all: there
    only an owner can rename or remove what is his.
    """
    if about.st_uid not in (os.geteuid(), 0):
        _refuse(path, f"belongs to another user ({about.st_uid})")
    if about.st_mode & 0o022 and not (sticky and about.st_mode & stat.S_ISVTX):
        _refuse(path, f"can be written by others (mode {stat.S_IMODE(about.st_mode):04o})")


def _made(path: str) -> None:
    """Make a folder and those above it, for this user alone."""
    above = os.path.dirname(path)
    if not os.path.isdir(above) and above != path:
        _made(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)


def _entered(name: str, within: int | None, path: str, make: bool) -> int:
    """A descriptor of a folder. A link to it is followed when this user or root made it."""
    if make and within is not None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=within)
            os.chmod(name, 0o700, dir_fd=within)
    try:
        return os.open(name, _FOLDER | _NOFOLLOW, dir_fd=within)
    except OSError:
        about = os.stat(name, dir_fd=within, follow_symlinks=False)
        if not stat.S_ISLNK(about.st_mode):
            raise
        if about.st_uid not in (os.geteuid(), 0):
            _refuse(path, f"is a link of another user ({about.st_uid})")
        return os.open(name, _FOLDER, dir_fd=within)


@contextlib.contextmanager
def _opened(folder: Path, make: bool) -> Iterator[int]:
    """A descriptor of a folder of the cache, checked from the root down. OSError where it is not there."""
    start, names, check_start = _steps(folder)
    if make:
        _made(start)
    path, descriptor = start, _entered(start, None, start, False)
    try:
        if check_start:
            _check(os.fstat(descriptor), path, sticky=bool(names))
        for name in names:
            path = os.path.join(path, name)
            inner = _entered(name, descriptor, path, make)
            os.close(descriptor)
            descriptor = inner
            _check(os.fstat(descriptor), path)
        yield descriptor
    finally:
        os.close(descriptor)


@functools.cache
def _warn(message: str) -> None:
    """Once in a process for each folder."""
    warnings.warn(
        f"the cache of compiled kernels is not used: {message}. Take away others' permissions (chmod go-w), or set "
        "TORCHLITE_CACHE_DIR to a folder of your own",
        stacklevel=2,
    )


def is_trusted(folder: Path, make: bool = False) -> bool:
    """Whether what lies in a folder was written by this user or root; one that is missing (and not made) is. Warns
    where it was not.
    """
    if not _BY_DESCRIPTOR:
        return True
    try:
        with _opened(folder, make):
            return True
    except NotTrustedError as error:
        _warn(str(error))
        return False
    except OSError:
        return True


def read(path: Path) -> bytes | None:
    """What a file of the cache holds; None where it is missing, no plain file, or not trusted. A warning, once in a
    process, names the folder or the file that is not trusted.
    """
    try:
        if not _BY_DESCRIPTOR:
            return path.read_bytes() if path.is_file() else None
        with _opened(path.parent, False) as folder:
            return _content(os.open(path.name, _FILE, dir_fd=folder), path)
    except NotTrustedError as error:
        _warn(str(error))
        return None
    except OSError:
        return None


def _content(descriptor: int, path: Path) -> bytes | None:
    with open(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # none where it was just replaced
            return None
        _check(about, str(path))
        return file.read()


def write(path: Path, data: bytes) -> None:
    """Give a file of the cache new content: written beside its name under a new random name and moved there, so that
    other processes see all of it or nothing. What processes left that ended meanwhile is cleared. OSError where that is
    not possible, NotTrustedError where the folder is not trusted.
    """
    partial = f".{path.stem}.{secrets.token_hex(8)}{PART}"
    if not _BY_DESCRIPTOR:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_new(partial := str(path.parent / partial), str(path), data, None)
        return
    with _opened(path.parent, True) as folder:
        _write_new(partial, path.name, data, folder)
        _clear_abandoned(folder)


def _write_new(partial: str, name: str, data: bytes, folder: int | None) -> None:
    descriptor = os.open(partial, _NEW, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            if _BY_DESCRIPTOR:
                os.fchmod(descriptor, 0o600)
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial, dir_fd=folder)
        raise


def _clear_abandoned(folder: int) -> None:
    """Remove what processes left that were killed while they wrote."""
    for name in os.listdir(folder):
        if name.endswith(PART):
            with contextlib.suppress(OSError):
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if time.time() - about.st_mtime < _ABANDONED:
                    continue
                if stat.S_ISDIR(about.st_mode):
                    shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)


def remove(path: Path) -> None:
    """Remove a file of the cache. OSError where it is missing or its folder is not trusted."""
    if not _BY_DESCRIPTOR:
        path.unlink()
        return
    with _opened(path.parent, False) as folder:
        os.unlink(path.name, dir_fd=folder)
