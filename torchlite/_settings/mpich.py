"""Shared memory that MPICH's killed processes leave: MPICH removes its names only where it ends in peace."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time

_PLACE = "/dev/shm"
_NAME = re.compile(r"mpich_shm_[0-9a-f]+_[0-9]+|mpich_shar_tmp\w+")
_YOUNG = 1.0  # seconds in which a process that is not seen from here may still be about to map a file


def clear_shared_memory() -> None:
    """Remove MPICH's files of this user that no process has open or mapped any more."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(_PLACE):
            with contextlib.suppress(OSError):
                about = os.lstat(path := os.path.join(_PLACE, name))
                mine = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
                if _NAME.fullmatch(name) and mine and time.time() - about.st_mtime > _YOUNG:
                    found.add(path)
    if not found:
        return
    used = _used(found)
    for path in found - used:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _used(paths: set[str]) -> set[str]:
    """Those of the files that a process has mapped or open."""
    used: set[str] = set()
    for process in os.listdir("/proc"):
        if not process.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{process}/maps", errors="replace") as maps:
            used |= {line.rstrip("\n").partition(_PLACE)[2] for line in maps if _PLACE in line}
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    used.add(os.readlink(f"/proc/{process}/fd/{number}").partition(_PLACE)[2])
    return {path for path in paths if path.removeprefix(_PLACE) in used}
