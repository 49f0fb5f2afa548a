"""Launcher of one machine among several: `torchlite-run --rdzv-backend c10d`, or `--node-rank` with `--master-addr`.

Each machine runs one. They meet by a store at an address, which the machine of that address serves, and start the
processes of a round. When a process fails, or a machine goes or comes, all form another round.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from .._stores import PrefixStore, TCPStore
from .._work import DistError, DistNetworkError
from .elastic_meeting import Machine, Meeting, Round, RunClosed, Settings
from .mpiexec_launcher import describe_failure
from .rank_wrapper import (
    FOREIGN_VARIABLES,
    describe_end,
    forward_lines,
    make_environment,
    open_streams,
    signal_child_at_parent_end,
)

_PATIENCE = 30.0  # seconds to end after a signal, as in torchrun
RunOptions = dict[str, Any]  # those of `rank_wrapper`, and `monitor_interval` and `signals`


class Workers:
    """The processes of a round on this machine."""

    def __init__(self, options: RunOptions, place: Round, command: list[str]) -> None:
        before = sum(machine.processes for machine in place.machines[: place.node])
        size, own = sum(machine.processes for machine in place.machines), place.machines[place.node].processes
        first = place.machines[0]
        placed = {"nodes": len(place.machines), "master_addr": first.address, "master_port": first.port}
        self._options, self._round = {**options, **placed}, place.number
        self._places = [
            {"rank": before + local, "size": size, "local_rank": local, "local_size": own, "node": place.node}
            for local in range(own)
        ]
        self._folder = os.path.join(options["folder"], f"round-{place.number}")
        self._carriers: list[threading.Thread] = []
        self._processes: list[subprocess.Popen] = []
        try:
            for at in self._places:
                self._start(at, command)
        except BaseException:
            self.stop(lambda: None)
            raise

    def _error_file(self, at: dict[str, int]) -> str:
        return os.path.join(self._folder, str(at["rank"]), "error.json")

    def _start(self, at: dict[str, int], command: list[str]) -> None:
        os.makedirs(os.path.dirname(self._error_file(at)))
        streams = open_streams({**self._options, "restart": self._round}, at)
        plain = [shown and file is None for shown, file in streams]
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_VARIABLES)}
        process = subprocess.Popen(
            [part.replace("${local_rank}", str(at["local_rank"])) for part in command],
            env=make_environment(self._options, at, self._error_file(at), own),
            stdin=subprocess.DEVNULL if at["local_rank"] else None,
            stdout=None if plain[0] else subprocess.PIPE,
            stderr=None if plain[1] else subprocess.PIPE,
            preexec_fn=signal_child_at_parent_end(signal.SIGKILL),  # noqa: PLW1509 -- it calls one function of libc
        )
        self._processes.append(process)
        prefix = f"[{self._options['role']}{at['local_rank']}]:".encode()
        pipes = zip(streams, (process.stdout, process.stderr), (sys.stdout.buffer, sys.stderr.buffer), strict=True)
        for (shown, file), source, target in pipes:
            if source is not None:
                words = (source, target if shown else None, file, prefix)
                self._carriers.append(threading.Thread(target=forward_lines, args=words, daemon=True))
                self._carriers[-1].start()

    def ended(self) -> bool:
        """True if all have ended."""
        return all(process.poll() is not None for process in self._processes)

    def failure(self) -> dict[str, Any] | None:
        """Return a failed process's description."""
        for at, process in zip(self._places, self._processes, strict=True):
            if process.poll():
                return describe_end(process.returncode, at, process.pid, self._error_file(at))
        return None

    def send(self, number: int) -> None:
        """Send a signal to the running processes."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(number)

    def stop(self, beat: Callable[[], None], number: int = signal.SIGTERM) -> None:
        """End the processes: by a signal, and those that need long by SIGKILL."""
        self.send(number)
        end = time.monotonic() + _PATIENCE
        while not self.ended() and time.monotonic() < end:
            beat()
            time.sleep(0.05)
        self.send(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        for thread in self._carriers:
            thread.join(5)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def handle_signals(names: str, handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Call a handler at signals (names with commas between them), if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        names = ""
    numbers = [signal.Signals[name.strip()] for name in names.split(",") if name.strip()]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Agent:
    """The launcher: rounds of processes of a command, until the run ends."""

    def __init__(self, meeting: Meeting, own: Machine, options: RunOptions, command: list[str]) -> None:
        self._meeting, self._own, self._options, self._command = meeting, own, options, command
        self._left, self._pause = options["max_restarts"], options["monitor_interval"]
        self._signal = 0

    def _note_signal(self, number: int, _: Any) -> None:
        self._signal = number

    def run(self) -> int:
        """Return the exit code."""
        with handle_signals(self._options["signals"], self._note_signal):
            while True:
                place = self._meeting.join(free_port(self._own.address), lambda: self._signal > 0)
                if place is None:
                    self._meeting.leave()
                    return 128 + self._signal
                options = {**self._options, "restart": self._options["max_restarts"] - self._left}
                workers = Workers(options, place, self._command)
                try:
                    code = self._watch(workers, place)
                finally:
                    workers.stop(self._beat, self._signal or signal.SIGTERM)
                if code is not None:
                    return code

    def _beat(self) -> None:
        with contextlib.suppress(DistError):  # the processes are stopped also where the store has gone
            self._meeting.beat()

    def _watch(self, workers: Workers, place: Round) -> int | None:
        """Return the exit code; None where another round must be formed."""
        while True:
            if self._signal:
                self._meeting.leave()
                return 128 + self._signal
            failure = workers.failure()
            if failure is not None:
                return self._fail(failure)
            if workers.ended() and self._meeting.end_round(place.number):
                return 0
            try:
                if self._meeting.must_meet_again(place.number):
                    _say("a machine has come or gone, or a process has failed there: all processes start again")
                    return None
            except RunClosed as closed:
                if str(closed):
                    raise
                return 0  # the last machine has ended since this one's processes did
            time.sleep(self._pause)

    def _fail(self, failure: dict[str, Any]) -> int | None:
        words = describe_failure(failure)
        _say(words)
        if self._left:
            self._left -= 1
            _say(f"all processes start again ({self._left + 1} more times at most)")
            return None
        self._meeting.close(words)
        _say("the others are ended")
        return 128 - failure["code"] if failure["code"] < 0 else failure["code"]


def run_elastic(
    endpoint: tuple[str, int], machines: tuple[int, int], order: int, options: RunOptions, command: list[str],
    settings: Settings,
) -> int:  # fmt: skip
    """Run this machine's part of a run of a command. Return the exit code."""
    who = (order, options["local_addr"], options["per_node"])
    meeting, own, serves = open_meeting(endpoint, f"torchlite-run/{options['run_id']}", who, machines, settings)[:3]
    try:
        code = Agent(meeting, own, options, command).run()
    except RunClosed as closed:
        reason = str(closed)
        _say(f"the run has ended: {reason}" if reason else "the run has ended on all machines")
        code = 1 if reason else 0
    except DistError as error:
        raise RuntimeError(f"the store of the machines was lost: {error}") from None
    meeting.depart(serves and code < 128)
    return code


def open_meeting(
    endpoint: tuple[str, int], prefix: str, who: tuple[int, str, int], machines: tuple[int, int], settings: Settings
) -> tuple[Meeting, Machine, bool, PrefixStore]:
    """Return the meeting at an endpoint, this machine, whether it serves the store, and the part with `prefix`.

    `who` is the machine's number, its address or "", and how many processes it starts.
    """
    order, given, processes = who
    server, serves = open_store(*endpoint, settings.read_timeout)
    own = new_machine(order, given or _own_address(endpoint[0], server.port), processes)
    store = PrefixStore(prefix, server)
    return Meeting(store, own, *machines, settings), own, serves, store


def new_machine(order: int, address: str, processes: int) -> Machine:
    """Return this machine with a name that no other launcher has."""
    return Machine(uuid.uuid4().hex, order, address, 0, processes)


def open_store(host: str, port: int, seconds: float, is_host: bool | None = None) -> tuple[TCPStore, bool]:
    """Return the store at the endpoint, and whether this process serves it.

    One process serves: on the address's machine, or where `is_host` is true.
    """
    limit = timedelta(seconds=seconds)
    if _is_here(host) if is_host is None else is_host:
        with contextlib.suppress(DistNetworkError):  # another launcher of this machine serves it
            return TCPStore(host, port, None, True, limit, wait_for_workers=False), True
    return TCPStore(host, port, None, False, limit), False


def _is_here(host: str) -> bool:
    """True if a host's address belongs to this machine."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.bind(address)
        return True
    except OSError:
        return False


def _own_address(host: str, port: int) -> str:
    """Return this machine's address in the network of the endpoint."""
    kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # sends nothing
        return probe.getsockname()[0]


def free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        return listener.getsockname()[1]


def _say(words: str) -> None:
    print("\n".join(f"torchlite-run: {line}" for line in words.splitlines()[:1]), file=sys.stderr, flush=True)
    for line in words.splitlines()[1:]:
        print(line, file=sys.stderr, flush=True)
