"""The byte code of the functions of ops, on the disk for later processes.

Python keeps the byte code of modules beside them; the functions that are generated from records have one file of the
user's cache, which `cache_files` reads only where no other user can have written it. The file begins with a stamp: the
interpreter, and name, size and time of each file that a function's text depends on. With another stamp, or with damage,
it is as absent, and functions are generated. A process that generated some writes the file when it ends.

`TORCHLITE_KEEP_FUNCTIONS=0` switches this off. Where Python writes no byte code (`PYTHONDONTWRITEBYTECODE`), functions
are read and not written.
"""

from __future__ import annotations

import atexit
import binascii
import contextlib
import functools
import marshal
import os
import sys
from types import CodeType

from ..._settings import cache_files
from ..op_record import REGISTRY, Op

_LARGEST = 1 << 20  # bytes of all functions that are kept
_CHECKSUM = 4  # bytes at the start of a file
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_RECORDS = os.path.join(_PACKAGE, "_ops")
_FOLDERS = ("_ops", "_dispatch", os.path.join("_dispatch", "codegen"), "_types")
_made: dict[str, bytes] = {}  # what this process generated
_used: dict[str, bytes] = {}  # what it found


def _is_enabled() -> bool:
    return os.environ.get("TORCHLITE_KEEP_FUNCTIONS", "1") != "0"


def _is_kept(op: Op) -> bool:
    """Whether the files of the stamp say all about an op: programs declare others, or replace them."""
    return REGISTRY.get(op.name) is op and os.path.dirname(op.file) == _RECORDS


def find(op: Op, kind: str) -> CodeType | None:
    """The byte code of one of an op's functions, None if it is not kept."""
    if not _is_kept(op):
        return None
    key = f"{op.name} {kind}"
    code = _read().get(key)
    if code is None:
        return None
    _used[key] = code
    return marshal.loads(code)


def keep(op: Op, kind: str, code: CodeType) -> None:
    """Have the byte code of a function written when the process ends."""
    if not _is_kept(op) or sys.dont_write_bytecode or not _is_enabled():
        return
    if not _made:
        atexit.register(_write)
    _made[f"{op.name} {kind}"] = marshal.dumps(code)


def _path() -> str:
    """The file of this installation and interpreter."""
    where = binascii.crc32(f"{_PACKAGE} {sys.flags.optimize}".encode("utf-8", "surrogateescape"))
    return os.path.join(
        cache_files.cache_home(), "torchlite", "functions", f"{sys.implementation.cache_tag}-{where:08x}"
    )


@functools.cache
def _stamp() -> bytes:
    """Key of the cache: all that the text of functions depends on."""
    lines = [f"{_PACKAGE} {sys.version} {sys.flags.optimize}"]
    for folder in _FOLDERS:
        with os.scandir(os.path.join(_PACKAGE, folder)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith((".py", ".txt")):
                    about = entry.stat()
                    lines.append(f"{entry.name} {about.st_size} {about.st_mtime_ns}")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


@functools.cache
def _read() -> dict[str, bytes]:
    """The kept functions; none where there is no file, or one that another version, another user or damage left."""
    return _parse(cache_files.read(_path(), warn=False)) if _is_enabled() else {}


def _parse(data: bytes | None) -> dict[str, bytes]:
    if data is None or int.from_bytes(data[:_CHECKSUM], "little") != binascii.crc32(data[_CHECKSUM:]):
        return {}
    try:
        stamp, functions = marshal.loads(data[_CHECKSUM:])
        return functions if stamp == _stamp() else {}
    except (EOFError, TypeError, ValueError, OSError):  # of another Python; a file of the source is gone
        return {}


def _write() -> None:
    """Write the functions that this process used, and as many of the others as there is room for."""
    with contextlib.suppress(OSError):  # no folder can be written
        kept: dict[str, bytes] = {}
        room = _LARGEST
        for key, code in {**_made, **_used, **_parse(cache_files.read(_path(), warn=False))}.items():
            room -= len(code)
            if room >= 0:
                kept[key] = code
        data = marshal.dumps((_stamp(), kept))
        cache_files.write(_path(), binascii.crc32(data).to_bytes(_CHECKSUM, "little") + data)
