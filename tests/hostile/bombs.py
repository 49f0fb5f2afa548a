"""Small files that ask for much work or memory: `python -m tests.hostile.bombs` reads each, and runs some.

A table of bombs maps a name to a function that returns the file's bytes and the text of a Python expression over
`path`, `torch` and `np`, such as "torch.jit.load(path)". Each expression runs in a process of its own, a fork of one
that has imported the library. It has to end within 2 seconds, with a result or one plain error, and may take 50 times
the file's size and 64 MB. Tables: `BOMBS` of this package's modules `program_bombs`, `checkpoint_bombs` and
`onnx_bombs`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

Bomb = Callable[[], tuple[bytes, str]]

SECONDS, LONGEST = 2, 20  # of the processor; of the clock, until the process is ended, for other processes may be busy
RATIO, SPARE = 50, 64 << 20
_ADDRESSES = 8 << 30  # bytes of addresses that a process may have
_TABLES = ("program_bombs", "checkpoint_bombs", "onnx_bombs")
_UNCLEAN = (MemoryError, SystemError, AssertionError)  # no errors that a file may raise


def tables() -> dict[str, Bomb]:
    """The bombs of all tables."""
    found: dict[str, Bomb] = {}
    for name in _TABLES:
        if importlib.util.find_spec(f"{__package__}.{name}") is not None:
            bombs = importlib.import_module(f"{__package__}.{name}").BOMBS
            assert not found.keys() & bombs.keys()
            found |= bombs
    return found


def _peak() -> int:
    """The most memory that this process has had, in bytes: a fork begins with what it has."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def _names(path: str) -> dict[str, Any]:
    import numpy as np

    import torchlite as torch

    return {"torch": torch, "np": np, "path": path}


def prepare() -> None:
    """Import what the bombs need, so that it is not counted."""
    import torchlite.distributed.checkpoint
    import torchlite.export
    import torchlite.jit
    import torchlite.onnx  # noqa: F401

    _names("")


def _measured(expression: str, path: str) -> dict[str, Any]:
    """Return the cost of an expression in this process."""
    names, code = _names(path), compile(expression, "<bomb>", "eval")
    before, begin, wall = _peak(), time.process_time(), time.monotonic()
    said = unclean = ""
    try:
        eval(code, names)
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:300]}"
        unclean = said if isinstance(error, _UNCLEAN) or len(str(error)) > 5000 else ""
    return {
        "cpu": time.process_time() - begin, "wall": time.monotonic() - wall, "memory": _peak() - before, "said": said,
        "unclean": unclean,
    }  # fmt: skip


def _child(expression: str, path: str, pipe: int) -> None:
    """Measure in a fork, write what was found and end."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.write(pipe, json.dumps(_measured(expression, path)).encode())
        status = 0
    finally:
        os._exit(status)


def run(data: bytes, expression: str, timed: bool = True) -> dict[str, Any]:
    """Return the cost of a file: `wrong` is "" if it is within its limits."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bomb")
        with open(path, "wb") as file:
            file.write(data)
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            os.close(reading)
            _child(expression, path, writing)
        os.close(writing)
        ready = select.select([reading], [], [], LONGEST)[0]
        if not ready:
            os.kill(process, signal.SIGKILL)
        text = os.read(reading, 1 << 16) if ready else b""
        os.close(reading)
        status = os.waitpid(process, 0)[1]
    if not text:
        ended = f"the process ended with {os.waitstatus_to_exitcode(status)}" if ready else "it did not end"
        return {"wrong": ended, "cpu": 0.0, "wall": 0.0, "memory": 0, "said": ""}
    found = json.loads(text)
    found["wrong"] = found["unclean"]
    if timed and found["cpu"] > SECONDS:
        found["wrong"] = f"it took {found['cpu']:.1f} seconds"
    elif found["memory"] > RATIO * len(data) + SPARE:
        found["wrong"] = f"it took {found['memory'] >> 20} MB, the file has {len(data) >> 10} kB"
    return found


def check(names: Iterable[str], tell: bool = False, timed: bool = True) -> list[str]:
    """The faults of the bombs of these names. Unless `timed`, each has to end and may take its time."""
    prepare()
    wrong, table = [], tables()
    for name in names:
        data, expression = table[name]()
        found = run(data, expression, timed)
        if tell:
            cost = f"{found['cpu']:6.2f} s {found['wall']:6.2f} s {found['memory'] >> 20:5} MB of {len(data) >> 10} kB"
            print(f"{name:40} {cost}  {found['said'][:100]!r}", flush=True)
        if found["wrong"]:
            wrong.append(f"{name}: {found['wrong']}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.bombs", description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="what the names of the bombs contain")
    parser.add_argument("--step", type=int, default=1, help="every so many of them")
    parser.add_argument("--untimed", action="store_true", help="ask that each ends, and not how soon")
    options = parser.parse_args()
    names = [name for name in sorted(tables()) if options.part in name][:: options.step]
    wrong = check(names, tell=True, timed=not options.untimed)
    for line in wrong:
        print("wrong", line)
    print(f"{len(names)} bombs, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
