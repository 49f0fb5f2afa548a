"""Removes the names of MPICH's shared memory. MPICH removes them only at a normal exit, but needs them only until all
ranks of a machine have mapped the memory.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time

_FOLDER = "/dev/shm"
_NAME = re.compile(r"mpich_shm_[0-9a-f]+_[0-9]+|mpich_shar_tmp\w+")
_MIN_AGE = 1.0  # seconds in which a process that is not seen from here may still be about to map a file


def unlink_mapped() -> None:
    """Remove the names of this process's mappings. Call it when all ranks of this machine have mapped them. The memory
    is then freed when the processes end, even abnormally.
    """
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="replace") as maps:
        for name in {line.rstrip("\n").rpartition("/")[2] for line in maps if f" {_FOLDER}/" in line}:
            if _NAME.fullmatch(name):
                with contextlib.suppress(OSError):  # another rank was first
                    os.unlink(os.path.join(_FOLDER, name))


def clear_shared_memory(patient: bool = False) -> None:
    """Remove MPICH's files of this user that no process has open or mapped any more. New ones are left, or with
    `patient` waited for.
    """
    found, young = _list_own_files()
    if young and patient:
        time.sleep(_MIN_AGE)
        found = _list_own_files()[0]
    if not found:
        return
    used = _find_files_in_use(found)
    for path in found - used:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _list_own_files() -> tuple[set[str], bool]:
    """The files of this user that are not new, and whether there are new ones."""
    found, young = set(), False
    with contextlib.suppress(OSError):
        for name in os.listdir(_FOLDER):
            with contextlib.suppress(OSError):
                about = os.lstat(path := os.path.join(_FOLDER, name))
                if not _NAME.fullmatch(name) or not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                    continue
                if time.time() - about.st_mtime > _MIN_AGE:
                    found.add(path)
                else:
                    young = True
    return found, young


def _find_files_in_use(paths: set[str]) -> set[str]:
    """The subset of the files that a process has mapped or open."""
    used: set[str] = set()
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{process}/maps", errors="replace") as maps:
            used |= {line.rstrip("\n").partition(_FOLDER)[2] for line in maps if _FOLDER in line}
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    used.add(os.readlink(f"/proc/{process}/fd/{number}").partition(_FOLDER)[2])
    return {path for path in paths if path.removeprefix(_FOLDER) in used}
