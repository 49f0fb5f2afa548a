"""Meeting of machines that each run a launcher: a store says which of them form the present round of a run.

A round is open while machines join it, and closed while its processes run. Who wants another round (a process failed, a
machine is silent or waits) opens it, and the launchers of the others stop their processes and join it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

_PAUSE = 0.1  # seconds between two looks at the store
_BEAT = 0.5  # seconds between two signs of life
_LEAVING = 10.0  # seconds that the store stays for the others


class Settings(NamedTuple):
    """Limits in seconds, with PyTorch's defaults; `--rdzv-conf` names them."""

    join_timeout: float = 600.0
    last_call_timeout: float = 30.0
    keep_alive_interval: float = 5.0
    keep_alive_max_attempt: float = 3.0
    read_timeout: float = 60.0

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Read "name=seconds,name=seconds". ValueError for other names."""
        found = {}
        for word in filter(None, text.split(",")):
            name, sign, value = (part.strip() for part in word.partition("="))
            name = "join_timeout" if name == "timeout" else name
            if name not in cls._fields or not sign:
                raise ValueError(f"--rdzv-conf: {word!r} is none of {', '.join(cls._fields)} with a number of seconds")
            try:
                found[name] = float(value)
            except ValueError:
                raise ValueError(f"--rdzv-conf: {value!r} is no number of seconds") from None
        return cls(**found)


class Machine(NamedTuple):
    """A launcher's machine; `port` is free for a store of rank 0."""

    name: str
    order: int  # `--node-rank`
    address: str
    port: int
    processes: int


class Round(NamedTuple):
    """A closed round: its machines in the order of their ranks, and the number of this one among them."""

    number: int
    machines: list[Machine]
    node: int


class RunClosed(Exception):
    """The run has ended on another machine; the reason, "" after a success."""


class State:
    """The run, as the store has it."""

    def __init__(self, data: bytes) -> None:
        read = json.loads(data) if data else {}
        self.number: int = read.get("number", 0)
        self.open: bool = read.get("open", True)
        self.machines = [Machine(*words) for words in read.get("machines", [])]
        self.waiting: list[str] = read.get("waiting", [])
        self.ended: list[str] = read.get("ended", [])
        self.closed: str | None = read.get("closed")

    def encode(self) -> bytes:
        return json.dumps(vars(self), sort_keys=True).encode()

    def names(self) -> list[str]:
        return [machine.name for machine in self.machines]

    def begin(self, *machines: Machine) -> None:
        """Open the next round."""
        self.number, self.open, self.machines, self.ended = self.number + 1, True, list(machines), []


class StateHolder(Protocol):
    """Where the state of a run is: `read` returns it with a token, and `write` replaces the one of this token.

    `write` returns whether it did; another machine may have been faster.
    """

    def read(self) -> tuple[bytes, Any]: ...
    def write(self, data: bytes, token: Any) -> bool: ...


class StoredState:
    """The state as a value of a store; the token is the value."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def read(self) -> tuple[bytes, Any]:
        data = self._store.get("state") if self._store.check(["state"]) else b""
        return data, data

    def write(self, data: bytes, token: Any) -> bool:
        return bool(self._store.compare_set("state", token, data) == data)


class Meeting:
    """This machine's part in the rounds of a run of `low` to `high` machines.

    Signs of life are values of the store, and so is the state without a `state` of its own.
    """

    def __init__(
        self, store: Any, own: Machine, low: int, high: int, settings: Settings, state: StateHolder | None = None
    ) -> None:
        self._store, self._own, self._low, self._high, self._settings = store, own, low, high, settings
        self._state = StoredState(store) if state is None else state
        self._left = -1  # the number of the last round of this machine
        self._signs: dict[str, tuple[bytes, float]] = {}  # by machine: the last sign of life, and when it was new
        self._beats, self._beat_at = 0, 0.0
        self._seen: tuple[list[Any], float] = ([], 0.0)  # an open round and its machines, and since when

    def join(self, port: int, interrupted: Callable[[], bool]) -> Round | None:
        """Wait for a round with this machine; None if the program is interrupted.

        TimeoutError if too few machines come, RunClosed if the run has ended.
        """
        self._own = self._own._replace(port=port)
        end = time.monotonic() + self._settings.join_timeout
        while not interrupted():
            self.beat()
            state = self._change(self._step_in)
            if state.closed is not None:
                raise RunClosed(state.closed)
            if not state.open and self._own.name in state.names():
                self._left = state.number
                machines = sorted(state.machines, key=lambda machine: machine.order)
                return Round(state.number, machines, [machine.name for machine in machines].index(self._own.name))
            if time.monotonic() > end:
                raise TimeoutError(
                    f"too few machines came within {self._settings.join_timeout:g} seconds: {len(state.machines)} of "
                    f"{self._low}"
                )
            time.sleep(_PAUSE)
        return None

    def _step_in(self, state: State) -> None:
        """Bring this machine into an open round, or have one opened; close the round if it is complete."""
        mine, names = self._own.name, state.names()
        if state.closed is not None:
            return
        if not state.open:
            if mine in names and state.number > self._left:
                return
            if mine in names or not set(names) - set(self._silent(names)):
                state.begin(self._own)
            elif mine not in state.waiting:
                state.waiting.append(mine)
        if state.open:
            silent = self._silent(state.names())
            state.machines = [machine for machine in state.machines if machine.name not in silent]
            if mine not in state.names() and len(state.machines) < self._high:
                state.machines.append(self._own)
            state.waiting = [name for name in state.waiting if name not in state.names()]
            if [state.number, *state.names()] != self._seen[0]:
                self._seen = [state.number, *state.names()], time.monotonic()
            here, quiet = len(state.machines), time.monotonic() - self._seen[1]
            state.open = here < self._high and (here < self._low or quiet < self._settings.last_call_timeout)

    def must_meet_again(self, number: int) -> bool:
        """True if the machines of a running round must form another. RunClosed if the run has ended."""
        self.beat()
        state = self._read()
        if state.closed is not None:
            raise RunClosed(state.closed)
        if state.number != number or self._silent(state.names()):
            return True
        waiting = set(state.waiting) - set(self._silent(state.waiting))
        return bool(waiting) and len(state.machines) < self._high and not state.ended

    def end_round(self, number: int) -> bool:
        """Note that this machine's processes have ended well; True if those of all machines have, which ends the run.

        Or True if the run has ended so already.
        """

        def note(state: State) -> None:
            if state.closed is None and state.number == number:
                if self._own.name not in state.ended:
                    state.ended.append(self._own.name)
                if set(state.names()) <= set(state.ended):
                    state.closed = ""

        return self._change(note).closed == ""

    def close(self, reason: str) -> None:
        """End the run on all machines."""

        def note(state: State) -> None:
            state.closed = reason if state.closed is None else state.closed

        self._change(note)

    def is_closed(self) -> bool:
        """True if the run has ended."""
        return self._read().closed is not None

    def leave(self) -> None:
        """Take this machine out of the run; the others form another round."""

        def note(state: State) -> None:
            if self._own.name in state.names():
                others = [machine for machine in state.machines if machine.name != self._own.name]
                state.begin(*(others if state.open else ()))
            state.waiting = [name for name in state.waiting if name != self._own.name]

        self._change(note)

    def depart(self, serves: bool) -> None:
        """Note that this machine needs the store no more; whoever serves it waits for the others."""
        with contextlib.suppress(RuntimeError):  # the store has gone
            self._store.set(f"departed/{self._own.name}", "")
            end = time.monotonic() + _LEAVING
            others = [name for name in (*self._read().names(), *self._read().waiting) if name != self._own.name]
            while serves and time.monotonic() < end:
                silent = self._silent(others)
                if all(name in silent or self._store.check([f"departed/{name}"]) for name in others):
                    return
                time.sleep(_PAUSE)

    def beat(self) -> None:
        """Give a sign of life."""
        if time.monotonic() - self._beat_at > min(_BEAT, self._settings.keep_alive_interval):
            self._beats, self._beat_at = self._beats + 1, time.monotonic()
            self._store.set(f"alive/{self._own.name}", str(self._beats))

    def _silent(self, names: Iterable[str]) -> list[str]:
        """Return the machines that have given no sign of life for some time, of which they had given one."""
        limit, found = self._settings.keep_alive_interval * self._settings.keep_alive_max_attempt, []
        for name in names:
            if name == self._own.name:
                continue
            sign = self._store.get(f"alive/{name}") if self._store.check([f"alive/{name}"]) else b""
            if name not in self._signs or self._signs[name][0] != sign:
                self._signs[name] = sign, time.monotonic()
            elif time.monotonic() - self._signs[name][1] > limit:
                found.append(name)
        return found

    def _read(self) -> State:
        return State(self._state.read()[0])

    def _change(self, step: Callable[[State], None]) -> State:
        """Change the state by a function of it, which is called again if another machine was faster."""
        while True:
            before, token = self._state.read()
            state = State(before)
            step(state)
            after = state.encode()
            if after == before or self._state.write(after, token):
                return state
