"""Loads files of a range of numbers, in a process that may break.

`python -m tests.hostile.loader_process SEED FIRST STEP LAST WAY` prints `at NUMBER` before each, and `wrong NUMBER
WHAT` for what loading must not do. WAY is path, mmap, buffer, or each for these in turn.
"""

from __future__ import annotations

import faulthandler
import io
import os
import pickle
import re
import sys
import tempfile
import time
import tracemalloc
import warnings
from typing import Any

import torchlite as torch

from . import corpus, damage

WAYS = ("path", "mmap", "buffer")
SECONDS = 10  # of the processor: other processes may have it meanwhile
_SPARE = 4 << 20  # bytes that any load may take: tables that Python makes, the text of an error with its places
_OBJECT = 128  # bytes of an object that one opcode makes
_RECORDS = re.compile(
    r"data\.pkl|data/|zip archive|byteorder|version|magic number|system info|object|storage|mmap can only"
)
_FORBIDDEN = {
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
    "os.putenv", "subprocess.Popen", "socket.connect", "socket.bind", "shutil.rmtree", "ctypes.dlopen", "exec",
}  # fmt: skip
_seen: list[str] = []
_watching = False


def _watch(event: str, arguments: tuple) -> None:
    if not _watching or event not in _FORBIDDEN and (event != "open" or not set(str(arguments[1])) & set("wax+")):
        return
    # torchlite's functions are text that is compiled when they are first used, and its modules are imported then.
    # (`tests.hostile.injected_names` reads that text.)
    where = sys._getframe(1).f_code.co_filename
    if event != "exec" or not where.endswith(os.path.join("_types", "python_source.py")) and "importlib" not in where:
        _seen.append(f"{event} in {where}")


def _load(path: str, data: bytes, way: str) -> Any:
    if way == "buffer":
        return torch.load(io.BytesIO(data), weights_only=True)
    return torch.load(path, weights_only=True, mmap=way == "mmap")


def _outside(value: Any, depth: int = 0) -> bool:
    """Whether a tensor of a loaded object reaches beyond its storage."""
    if depth > 5:
        return False
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        span = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
        need = (value.storage_offset() + span + 1) * value.element_size() if value.numel() else 0
        return need > value.untyped_storage().nbytes()
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_outside(item, depth + 1) for item in inside[:1000])


def _wrong(path: str, data: bytes, way: str, check_memory: bool = True) -> str:
    """Return the fault in loading a file, or ""."""
    global _watching
    _seen.clear()
    tracemalloc.reset_peak()
    before, begin, problem = tracemalloc.get_traced_memory()[0], time.process_time(), ""
    _watching = True
    try:
        found = _load(path, data, way)
        _watching = False
        problem = "a tensor reaches beyond its storage" if _outside(found) else ""
    except BaseException as error:
        _watching = False
        if type(error) not in (pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
            problem = f"{type(error).__name__}: {str(error)[:200]}"
        elif not _RECORDS.search(str(error).rpartition("WeightsUnpickler error")[2]):
            problem = f"no record is named: {type(error).__name__}: {str(error)[-200:]}"
        elif len(str(error)) > 5000:
            problem = f"an error of {len(str(error))} letters"
    seconds, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1] - before
    allowed = 2 * (len(data) + _OBJECT * min(len(data), 500_000)) + _SPARE
    if _seen:
        problem = f"it did {_seen}"
    elif seconds > SECONDS:
        problem = f"it took {seconds:.1f} seconds"
    elif check_memory and peak > allowed:
        problem = f"it took {peak >> 10} kB, the file has {len(data) >> 10} kB"
    return problem


class _Inert:
    """In the place of everything that a pickle names."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> _Inert:
        return _Inert()


def _unlisted(path: str, data: bytes) -> str:
    """Return the globals that Python's unpickler would import and `get_unsafe_globals_in_checkpoint` does not list."""
    try:
        told = set(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        return "" if type(error) in (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) else repr(error)
    except BaseException as error:
        return f"names: {type(error).__name__}: {str(error)[:200]}"
    asked = set()

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> type:
            asked.add((module, name))
            return _Inert

        def persistent_load(self, _: Any) -> _Inert:
            return _Inert()

    try:
        Unpickler(io.BytesIO(corpus.records(data)["data.pkl"])).load()
    except Exception:  # what it asked for before counts
        asked.discard(("", ""))
    from torchlite._serialization.pickle_globals import to_python3_name
    from torchlite._serialization.weights_only_unpickler import is_allowed

    missing = [
        f"{m}.{n}"
        for m, n in (to_python3_name(*names) for names in asked)
        if not is_allowed(m, n) and f"{m}.{n}" not in told
    ]
    return f"not told: {missing}" if missing and not any("?" in name for name in told) else ""


def check(seed: int, numbers: range, way: str, folder: str, note: Any = None) -> list[tuple[int, str, str]]:
    """Return the files of these numbers that load wrongly: number, description, fault."""
    path, found = os.path.join(folder, "x.pt"), []
    for data in corpus.files().values():  # what is compiled when it is first used
        _load(path, data, "buffer")
    tracemalloc.start()
    try:
        for number in numbers:
            made, data = damage.file(seed, number)
            with open(path, "wb") as stream:
                stream.write(data)
            if note is not None:
                note(number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                by = WAYS[number % 3] if way == "each" else way
                problem = _wrong(path, data, by) or (_unlisted(path, data) if made == "names" else "")
            if problem:
                found.append((number, made, problem))
    finally:
        tracemalloc.stop()
    return found


def main() -> None:
    seed, first, step, last, way = sys.argv[1:]
    sys.addaudithook(_watch)

    def note(number: int) -> None:
        print("at", number, flush=True)
        faulthandler.dump_traceback_later(6 * SECONDS, exit=True)

    with tempfile.TemporaryDirectory() as folder:
        for number, made, problem in check(int(seed), range(int(first), int(last), int(step)), way, folder, note):
            print("wrong", number, made, problem.replace("\n", " "))
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
