"""Launch a world with `mpiexec`, detect failed processes, and restart."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from torchlite.distributed._tcp_store_protocol import SECRET

from .error_streams import ErrorStreams
from .process_watcher import ProcessWatchers
from .rank_wrapper import ENDED, MARK, signal_child_at_parent_end

_HERE = os.path.dirname(os.path.abspath(__file__))
_PATIENCE = 10.0  # seconds for mpiexec to end the other processes after a failure
_NOTE = 3.0  # seconds after which a note reports that only some processes have ended
_SIGNALED = 30.0  # seconds to end after a signal, as in torchrun
_MISSED = 2.0  # seconds that processes may wait for a world that another has left
_HELPER = 1.0  # seconds that processes may outlive mpiexec's proxy that started them
_MESSAGE = 1 << 20  # bytes of a message of `rank_wrapper.py` at most
# Messages of MPICH and Open MPI when a rank aborts.
_ABORTS = re.compile(rb"Abort\((?P<code>-?\d+)\) on node (\d+) \(rank |MPI_ABORT was invoked on rank (\d+) ")
_GRACE = 5.0  # seconds that others may run after a process left its world by `os._exit(0)`


class Hosts(NamedTuple):
    """Host names and the number of processes on each."""

    names: list[str]
    slots: list[int]


def read_hosts(path: str, per_node: int) -> Hosts:
    """Read a hostfile with a host per line: `name`, `name:4` or `name slots=4`."""
    names, slots = [], []
    for line in Path(path).read_text().splitlines():
        words = line.partition("#")[0].replace(":", " slots=").split()
        if words:
            given = [word.removeprefix("slots=") for word in words[1:] if word.startswith("slots=")]
            if given and not given[0].isdigit():
                raise ValueError(f"{path}: {line!r} is no machine with a number of slots")
            names.append(words[0])
            slots.append(min(per_node, int(given[0])) if given else per_node)
    if not names:
        raise ValueError(f"{path} names no machine")
    return Hosts(names, slots)


def find_mpiexec() -> str:
    """Return the mpiexec next to this Python, or on the path. RuntimeError if there is none."""
    named = os.environ.get("TORCHLITE_MPIEXEC")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    found = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise RuntimeError("there is no mpiexec: pip install 'torchlite-nd[mpi]' brings one")
    return found


def mpi_command(mpiexec: str, size: int, per_node: int, hosts: Hosts | None) -> list[str]:
    """Return the `mpiexec` command for a world, without the command that each process runs."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    where = [] if hosts is None else [",".join(f"{n}:{s}" for n, s in zip(hosts.names, hosts.slots, strict=True))]
    if "open mpi" in version.lower() or "openrte" in version.lower():
        at = [flag for names in where for flag in ("--host", names)]
        return [mpiexec, "-n", str(size), *at, "--oversubscribe", "--bind-to", "none", "-x", SECRET]
    at = [flag for names in where for flag in ("-hosts", names)]
    spread = ["-ppn", str(per_node)] if hosts is None and size > per_node else []
    return [mpiexec, "-n", str(size), *at, *spread]


def rank_command(options: dict[str, Any], program: list[str], python: bool, module: bool) -> list[str]:
    """Return the command of each process: the wrapper, which starts the program."""
    wrapper = os.path.join(_HERE, "rank_wrapper.py")
    return [sys.executable, wrapper, json.dumps(options), *program_command(program, python, module)]


def program_command(program: list[str], python: bool, module: bool) -> list[str]:
    """Return the command of the program: a script, a module, or a command of its own."""
    if not python:
        return program
    return [sys.executable, "-u", os.path.join(_HERE, "run_program.py"), *(["-m"] if module else []), *program]


class LaunchedWorld:
    """One run of a world. `failures` lists the reported failures, in order.

    A process that ends with exit code 0 before `destroy_process_group` has failed, unless all others end at the same
    time. One that ends before joining the world has failed if others wait to join it. One that `mpiexec` ended, with
    exit code 0, has failed too: `folder` has the ranks' folders if they are on this machine.
    """

    def __init__(self, command: list[str], size: int, mark: str, folder: str = "") -> None:
        self.failures: list[dict[str, Any]] = []
        self._size, self._mark, self._folder = size, MARK.format(mark).encode(), folder
        self._shown = b""  # the end of the last shown output
        self._aborted: dict[str, int] = {}  # the rank that aborted MPI, and its exit code
        self._alone = 0.0  # since when processes go on without mpiexec's that started them
        self._watchers, self._told_end = ProcessWatchers(), set[int]()
        self.signaled = 0.0  # when the launcher got a signal
        self._signal = 0  # the last one
        self._states: dict[int, str] = {}  # by rank, of those that came to their end
        self._departed: list[dict[str, Any]] = []  # of those that ended without the others
        self._since, self._quiet = 0.0, False
        self._joining: set[int] = set()  # ranks that wait for all to join the world
        self._absent: list[dict[str, Any]] = []  # of those that ended before they had joined
        self._missed = 0.0  # since when the former wait for the latter
        self._first, self._noted = 0.0, False  # time at which the first process ended, and whether that was reported
        self._errors = ErrorStreams(folder, size)
        self._process = subprocess.Popen(
            command,
            env={**os.environ, SECRET: os.environ.get(SECRET) or secrets.token_hex(32)},
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=signal_child_at_parent_end(signal.SIGTERM),  # noqa: PLW1509 -- no thread runs yet
        )
        self._listener = threading.Thread(target=self._forward_error_output, daemon=True)
        self._failed = threading.Event()
        self._listener.start()

    def _forward_error_output(self) -> None:
        """Forward the error output, and extract the messages of `rank_wrapper.py`."""
        assert self._process.stderr is not None
        left: dict[int, bytes] = {}
        for source, data in self._errors.read(self._process.stderr.fileno()):
            if data:
                left[source] = self._process_lines(left.get(source, b"") + data)
            else:
                self._write_output(left.pop(source, b""))
        for rest in left.values():  # of processes that go on
            self._write_output(rest)

    def _process_lines(self, data: bytes) -> bytes:
        """Process complete lines; the rest may be the beginning of a message."""
        mark = self._mark
        while data:
            at = data.find(mark[:1])
            self._write_output(data if at < 0 else data[:at])
            data = b"" if at < 0 else data[at:]
            if not data.startswith(mark[: len(data)]):
                end = 1  # a character of the program's
            elif b"\n" in data:
                end = data.index(b"\n") + 1
            elif len(data) < _MESSAGE:
                return data
            else:
                end = len(data)
            self._handle_message(data[:end])
            data = data[end:]
        return b""

    def _handle_message(self, line: bytes) -> None:
        """Handle a message; show any other line."""
        if line.startswith(self._mark):
            try:
                self._handle_rank_message(json.loads(line[len(self._mark) :]))
                return
            except (ValueError, KeyError, TypeError):  # torn by another process's output
                pass
        self._write_output(line)

    def _write_output(self, data: bytes) -> None:
        if not data:
            return
        self._shown = (self._shown + data)[-len(data) - 100 :]
        if not self._aborted and (found := _ABORTS.search(self._shown)):
            self._aborted = {"aborted": int(found[2] or found[3]), "code": int(found["code"] or 1) & 255 or 1}
        if not self._quiet and sys.stderr is not None:  # None where it was closed before Python began
            with contextlib.suppress(OSError, ValueError):  # output is closed: mpiexec must not block
                sys.stderr.flush()
                stream = getattr(sys.stderr, "buffer", None)
                if stream is None:
                    sys.stderr.write(data.decode(errors="replace"))
                else:  # a part may end within a character
                    stream.write(data)
                    stream.flush()

    def _handle_rank_message(self, told: dict[str, Any]) -> None:
        if told["what"] == "start":
            self._watchers.add(told)
            if self._signal:  # mpiexec may have missed it before it knew the processes
                self._send_signal(self._signal)
            return
        rank, state = told["rank"], told["state"]
        if told["what"] == "state" and state != "waiting":
            (self._joining.add if state == "joining" else self._joining.discard)(rank)
            return
        self._joining.discard(rank)
        if told["what"] == "end":
            self._told_end.add(rank)
        if told["code"]:
            if self._quiet:  # all had come to their end, and were ended
                return
            told["ended"] = sorted(self._states)
            self.failures.append(told)
            self._failed.set()
            return
        self._states[rank] = state
        self._first = self._first or time.monotonic()
        if state == "inside":
            self._departed.append(told)
            self._since = self._since or time.monotonic()
        elif told["what"] == "end" and (state == "joining" or not told["joined"]):
            self._absent.append(told)

    def _is_missed(self) -> bool:
        """True if processes have waited for some time to join a world that others have left."""
        if not (self._absent and self._joining):
            self._missed = 0.0
            return False
        self._missed = self._missed or time.monotonic()
        if time.monotonic() - self._missed < _MISSED:
            return False
        waiting = sorted(self._joining)
        self._departed += [{**told, "waiting": waiting} for told in self._absent]
        return True

    def _all_ended(self) -> bool:
        """True if all processes ended, but some without MPI_Finalize, for which the others would wait."""
        return len(self._states) == self._size and any(state != "outside" for state in self._states.values())

    def _report_ended_processes(self) -> None:
        """Report once which processes ended while others run: those may wait for them."""
        if self._first and not self._noted and time.monotonic() - self._first > _NOTE:
            self._noted = True
            if (ended := sorted(self._states)) and len(ended) < self._size:
                print(
                    f"torchlite-run: ranks that have left (their program has ended): {ended}. The others go on; "
                    "if they wait for these, they end by their timeouts",
                    file=sys.stderr, flush=True,
                )  # fmt: skip

    def wait(self) -> int:
        """Wait until all processes have ended; return mpiexec's exit code. Kills processes that outlive a failed
        one.
        """
        try:
            return self._poll_until_end()
        finally:
            self._watchers.close()

    def _poll_until_end(self) -> int:
        since = 0.0
        while self._process.poll() is None and not self._failed.wait(0.1):
            since = (since or time.monotonic()) if self._all_ended() else 0.0
            if since and time.monotonic() - since > 1.0:  # those that end as usual need no help
                self._quiet = True
                self.end()
                return 0
            self._report_ended_processes()
            if failure := self._find_lost_proxy():
                self.failures.append(self._aborted or {**failure, "code": 1})
                self._send_signal(signal.SIGKILL)  # it waits for the one that has ended
                self._watchers.kill()
                break
            if self._is_missed() or self._is_late() or (self._since and time.monotonic() - self._since > _GRACE):
                self.end()
                break
        deadline = time.monotonic() + _PATIENCE
        while self._failed.is_set() and self._process.poll() is None:
            if time.monotonic() > deadline or self._find_lost_proxy():
                self.end()
                break
            time.sleep(0.05)
        code = self._process.wait()
        self._listener.join(5)
        if self._failed.is_set() and (proxy := self._watchers.proxy_ended_before(self.failures[0].get("rank", -1))):
            self.failures.insert(0, {**proxy, "code": 1})
        self.failures[:0] = self._departed if code or self.failures else []
        if not self.failures and not self.signaled and (failure := self._unreported_failure(code)):
            self.failures.append(failure)
        return code

    def _find_lost_proxy(self) -> dict[str, Any] | None:
        """Return the proxy of mpiexec that ended before its processes, for which mpiexec may wait forever."""
        told = self._watchers.helper()
        self._alone = (self._alone or time.monotonic()) if told else 0.0
        return told if self._alone and time.monotonic() - self._alone > _HELPER else None

    def _unreported_failure(self, code: int) -> dict[str, Any] | None:
        """Return the failure of a run in which no process reported one."""
        if self._aborted:
            return {**self._aborted, "code": code or 1}
        if code in (9, 137):  # a process was killed by SIGKILL
            told = self._watchers.lost(self._told_end)
            return told and {"signal": "", "ended": sorted(self._states), **told, "code": code}
        if code or not self._folder:
            return None
        ended = {rank for rank in range(self._size) if os.path.exists(os.path.join(self._folder, str(rank), ENDED))}
        missing = sorted(set(range(self._size)) - ended - self._told_end)
        return {"missing": missing, "before": sorted(self._states), "code": 1} if missing else None

    def _is_late(self) -> bool:
        """True if processes run long after a signal that should have ended them: they may be stopped."""
        return self.signaled > 0 and time.monotonic() - self.signaled > _SIGNALED

    def stop(self, number: int) -> None:
        """Forward a signal; kill what has not ended after some time."""
        self.signaled, self._signal = self.signaled or time.monotonic(), number
        self._send_signal(number)

    def _send_signal(self, number: int) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self) -> None:
        """Kill mpiexec and with it its processes."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._send_signal(number)
                try:
                    self._process.wait(5)
                except subprocess.TimeoutExpired:
                    continue
        self._watchers.kill()


def describe_failure(failure: dict[str, Any]) -> str:
    """Describe a failed process in a sentence, with its traceback."""
    if "helper" in failure:
        return (
            f"the process of mpiexec that had started the ranks {failure['ranks']} (pid {failure['helper']}) ended "
            "before them: it was killed"
        )
    if "aborted" in failure:
        return f"rank {failure['aborted']} aborted MPI (MPI_Abort, or an error of MPI that ends all): {failure['code']}"
    if "missing" in failure:
        return (
            f"mpiexec ended the ranks {failure['missing']} before their programs had come to an end. The ranks "
            f"{failure['before']} had ended with exit code 0, without MPI_Finalize where others need them"
        )
    how = f"was killed by {failure['signal']}" if failure["signal"] else f"ended with exit code {failure['code']}"
    if "watcher" in failure:
        how = f"was lost: the process that watches it (pid {failure['watcher']}) was killed"
    elif "waiting" in failure:
        how += f" before it had joined its world (init_process_group). These ranks wait for it: {failure['waiting']}"
    elif not failure["code"]:
        how += " while its process group existed, which the others wait for: call destroy_process_group before os._exit"
    head = (
        f"rank {failure['rank']} (local rank {failure['local_rank']} on {failure['host']}, pid {failure['pid']}) {how}"
    )
    ended = failure.get("ended")
    if ended:
        head += f"\nbefore that these ranks had come to the end of the program, which others may wait for: {ended}"
    return f"{head}\n{failure.get('traceback', '')}".rstrip()
