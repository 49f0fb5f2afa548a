"""A disk cache for later processes: compiled kernels, and measurements of drivers and kernel variants.

A cache holds code that runs, so it takes nothing that another user could have written. Every folder from the cache's
root down, and the file itself, must belong to this user or to root and must not be writable by group or others. Above
them, from the system's root on, no other user may be able to put another folder in their place, and links must be this
user's or root's. Each folder is opened from the one above it and then used by its descriptor, so that what was checked
is what is used. Folders are made with mode 0700 and files with 0600, whatever the umask. Systems without user ids
(Windows) rely on the profile's permissions.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PARTIAL_SUFFIX = ".part"  # how the names of unfinished files and folders end
_ABANDONED = 600  # seconds after which a temporary file counts as abandoned
_BY_DESCRIPTOR = hasattr(os, "geteuid") and os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSED = _FOLDER | getattr(os, "O_PATH", 0)  # for folders on the way, which need not be readable
_LINKS = 40  # that are followed on the way to a folder
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FILE = (
    os.O_RDONLY | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotTrustedError(PermissionError):
    """A folder or a file of the cache that another user could have written."""


def cache_home() -> str:
    """The folder that holds the cache's own folder `torchlite`."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.abspath(os.environ.get("TORCHLITE_CACHE_DIR") or home)


def cache_folder() -> Path:
    """The cache's own folder."""
    from pathlib import Path

    return Path(cache_home()) / "torchlite"


def _split(path: str) -> list[str]:
    """The parts of an absolute path."""
    return [os.sep, *filter(None, path.split(os.sep))]


def _path_components(folder: str) -> Iterator[tuple[str, bool]]:
    """The names on the way to a folder, and whether only this user or root may write there: in the cache's own folders,
    or the last one.
    """
    above, names = _split(cache_home()), _split(folder)
    inside = len(above) if len(names) > len(above) and names[: len(above)] == above else len(names) - 1
    for number, name in enumerate(names[1:], 1):
        yield name, number >= inside


def _raise_untrusted(path: str, why: str) -> None:
    raise NotTrustedError(f"{path} {why}, so that it may hold code of other users")


def _check_folder_is_trusted(about: os.stat_result, path: str) -> None:
    """NotTrustedError unless only this user or root can write here."""
    if about.st_uid not in (os.geteuid(), 0):
        _raise_untrusted(path, f"belongs to another user ({about.st_uid})")
    if about.st_mode & 0o022:
        _raise_untrusted(path, f"can be written by others (mode {stat.S_IMODE(about.st_mode):04o})")


def _check_above(about: os.stat_result, path: str, owners: set[int]) -> None:
    """NotTrustedError unless only this user, root or the owner of the system's root can replace this folder or one
    below it. In a `sticky` folder only the owner of an entry can rename it.
    """
    if about.st_uid not in owners:
        _raise_untrusted(path, f"belongs to another user ({about.st_uid})")
    others = about.st_mode & 0o002 or (about.st_mode & 0o020 and not _is_own_group(about.st_gid))
    if others and not about.st_mode & stat.S_ISVTX:
        _raise_untrusted(path, f"can be written by others (mode {stat.S_IMODE(about.st_mode):04o})")


def _is_own_group(number: int) -> bool:
    """True if a group is the user's private group: it has the user's name and no other members. On systems with such
    groups, folders are usually group-writable.
    """
    if not os.geteuid() or number != os.getegid():
        return False
    try:
        import grp
        import pwd

        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except (ImportError, KeyError):
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _open_entry(name: str, within: int, path: str, make: bool) -> int | str:
    """Open a descriptor of a folder, following a link that belongs to this user or root."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=within)
            os.chmod(name, 0o700, dir_fd=within)
    try:
        return os.open(name, _PASSED | _NOFOLLOW, dir_fd=within)
    except OSError:
        about = os.stat(name, dir_fd=within, follow_symlinks=False)
        if not stat.S_ISLNK(about.st_mode):
            raise
        if about.st_uid not in (os.geteuid(), 0):
            _raise_untrusted(path, f"is a link of another user ({about.st_uid})")
        return os.readlink(name, dir_fd=within)


@contextlib.contextmanager
def open_folder(folder: str | Path, make: bool = False) -> Iterator[int]:
    """Open a descriptor of a folder that only this user or root can write or replace. Checks every folder on the path,
    from the root. With `make`, missing folders are created. OSError if it is missing, NotTrustedError if it is not
    to be trusted.
    """
    folder = os.path.abspath(folder)
    left, path, links = list(_path_components(folder))[::-1], os.sep, 0
    descriptors = [os.open(os.sep, _PASSED)]
    try:
        owners = {os.geteuid(), 0, os.fstat(descriptors[0]).st_uid}
        while left:
            name, strict = left.pop()
            if name == os.pardir:  # of a link
                if len(descriptors) > 1:
                    os.close(descriptors.pop())
                    path = os.path.dirname(path)
                continue
            inner = os.path.join(path, name)
            found = _open_entry(name, descriptors[-1], inner, make)
            if isinstance(found, int):
                descriptors.append(found)
                path = inner
                if strict and left:
                    _check_folder_is_trusted(os.fstat(found), path)
                elif left:
                    _check_above(os.fstat(found), path, owners)
                continue
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
            if os.path.isabs(found):
                while len(descriptors) > 1:
                    os.close(descriptors.pop())
                path = os.sep
            names = [part for part in found.split(os.sep) if part not in ("", os.curdir)]
            left += [(part, strict and not number) for number, part in enumerate(reversed(names))]
        _check_folder_is_trusted(os.fstat(descriptors[-1]), path)
        descriptors.append(os.open(os.curdir, _FOLDER, dir_fd=descriptors[-1]))
        yield descriptors[-1]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@functools.cache
def _warn_once_per_folder(message: str) -> None:
    """Once in a process for each folder."""
    warnings.warn(
        f"the cache of compiled kernels is not used: {message}. Take away others' permissions (chmod go-w), or set "
        "TORCHLITE_CACHE_DIR to a folder of your own",
        stacklevel=2,
    )


def check_trusted(folder: str | Path) -> None:
    """NotTrustedError unless only this user or root can write or replace an existing folder."""
    if _BY_DESCRIPTOR:
        with open_folder(folder):
            return


def is_trusted(folder: Path, make: bool = False) -> bool:
    """True if only this user or root can have written a folder's content, or if it is missing (without `make`).
    Otherwise warns.
    """
    if not _BY_DESCRIPTOR:
        return True
    try:
        with open_folder(folder, make):
            return True
    except NotTrustedError as error:
        _warn_once_per_folder(str(error))
        return False
    except OSError:
        return True


def read(path: str | Path, warn: bool = True) -> bytes | None:
    """Read a file of the cache; None if it is missing, not a regular file, or not trusted. A warning, once per process,
    names the folder or file that is not trusted.
    """
    parent, name = os.path.split(path)
    try:
        if not _BY_DESCRIPTOR:
            if not os.path.isfile(path):
                return None
            with open(path, "rb") as file:
                return file.read()
        with open_folder(parent, False) as folder:
            return _read_all(os.open(name, _FILE, dir_fd=folder), path)
    except NotTrustedError as error:
        if warn:
            _warn_once_per_folder(str(error))
        return None
    except OSError:
        return None


def _read_all(descriptor: int, path: str | Path) -> bytes | None:
    with open(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:  # none where it was just replaced
            return None
        _check_folder_is_trusted(about, str(path))
        return file.read()


def write(path: str | Path, data: bytes) -> None:
    """Replace a file of the cache atomically: write a temporary file with a random name, then rename it, so that other
    processes see all or nothing. Removes temporary files of processes that have ended. OSError if this is not
    possible, NotTrustedError if the folder is not trusted.
    """
    parent, name = os.path.split(path)
    partial = f".{os.path.splitext(name)[0]}.{os.urandom(8).hex()}{PARTIAL_SUFFIX}"
    if not _BY_DESCRIPTOR:
        os.makedirs(parent, exist_ok=True)
        _write_new(os.path.join(parent, partial), os.fspath(path), data, None)
        return
    with open_folder(parent, True) as folder:
        _write_new(partial, name, data, folder)
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
        if name.endswith(PARTIAL_SUFFIX):
            with contextlib.suppress(OSError):
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if time.time() - about.st_mtime < _ABANDONED:
                    continue
                if stat.S_ISDIR(about.st_mode):
                    import shutil

                    shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)


def remove(path: str | Path) -> None:
    """Remove a file of the cache. OSError where it is missing or its folder is not trusted."""
    parent, name = os.path.split(path)
    if not _BY_DESCRIPTOR:
        os.unlink(path)
        return
    with open_folder(parent, False) as folder:
        os.unlink(name, dir_fd=folder)
