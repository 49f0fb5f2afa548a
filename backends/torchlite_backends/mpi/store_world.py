"""A world of processes that no launcher of MPI started: they find each other by a store that all have.

Each rank writes who it is, and which process it saw as rank 0. Rank 0 waits for all that saw it, so what an earlier run
left in a file does not count. It then writes the list of them, which makes the world: a rank that is not in the list
has come too late, or twice. After that MPI is served by `pmi_server` over the same store.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from torchlite._settings.mpich_shared_memory import clear_shared_memory

from .pmi_server import PMIServer

_MAX_PAUSE = 0.05  # seconds between two looks at the store
_MEMBER = re.compile(rb"(\d{1,9}) (\d{1,9}) ([0-9a-f]{32}) (\d{1,20}) ([!-~]{1,255}) ([!-~]{1,600}) ([0-9a-f]{32})")
_NOBODY = "0" * 32


class Member(NamedTuple):
    """The description that a process writes of itself; each part is bytes without blanks."""

    rank: int
    size: int
    token: str
    process: int
    host: str
    machine: str
    first: str  # token of rank 0, as this process saw it

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    def encode(self) -> bytes:
        return " ".join(map(str, self[:])).encode()

    @classmethod
    def parse(cls, data: bytes) -> Member:
        """Read what another process wrote. ValueError if it is nothing of the kind."""
        found = _MEMBER.fullmatch(data)
        if found is None:
            raise ValueError(
                "the store has a member of the world that torchlite did not write: does another program use it?"
            )
        rank, size, process = (int(found.group(part)) for part in (1, 2, 4))
        token, host, machine, first = (found.group(part).decode() for part in (3, 5, 6, 7))
        return cls(rank, size, token, process, host, machine, first)


def join_world(rank: int, size: int, store: Any, limit: float) -> PMIServer:
    """Meet the other ranks and return the server for MPI's library.

    TimeoutError if they have not all come within `limit` seconds. RuntimeError if they disagree about the world.
    """
    name, host, token = machine_name(), _printable(socket.gethostname()), secrets.token_hex(16)
    own = Member(rank, size, token, os.getpid(), host, name, _NOBODY if rank else token)
    end = time.monotonic() + limit
    if store.check(["world"]):
        _raise_if_absent(own, _parse_world(store, own))
    store.set(f"rank/{rank}", own.encode())
    if rank == 0:
        clear_shared_memory()
        members = _gather_members(store, own, end)
        store.set("world", b"\n".join(member.encode() for member in members))
    else:
        _wait_for_world(store, own, end)
        members = _parse_world(store, own)
        _raise_if_absent(own, members)
    machines: dict[str, int] = {}
    nodes = [machines.setdefault(member.machine, len(machines)) for member in members]
    return PMIServer(store, rank, nodes, f"torchlite-{members[0].token}")


def _gather_members(store: Any, own: Member, end: float) -> list[Member]:
    """Return all members once they have come."""
    missing = list(range(1, own.size))
    for _ in _looks(end):
        while missing and _find_member(store, missing[0], own):
            del missing[0]
        if not missing:
            others = {rank: _find_member(store, rank, own) for rank in range(1, own.size)}
            members = [own, *filter(None, others.values())]
            if len(members) == own.size:
                return members
            missing = [rank for rank, member in others.items() if member is None]  # they have begun again
    absent = [rank for rank in missing if _find_member(store, rank, own) is None]
    raise TimeoutError(f"{own.size - len(absent)}/{own.size} clients joined. These ranks did not: {absent}")


def _find_member(store: Any, rank: int, own: Member) -> Member | None:
    """Return the process that has joined as a rank and has seen rank 0, which asks; None before."""
    if not store.check([f"rank/{rank}"]):
        return None
    member = _read_member(store, rank)
    if member.first != own.token:
        return None
    _check_size(member, own)
    return member


def _wait_for_world(store: Any, own: Member, end: float) -> None:
    for _ in _looks(end):
        if store.check(["world"]):
            return
        now = Member.parse(store.get(f"rank/{own.rank}"))
        if now.token != own.token:
            raise RuntimeError(
                f"{now} has joined as rank {own.rank} after this process did: give each process a rank of its own"
            )
        if store.check(["rank/0"]):
            first = _read_member(store, 0)
            if first.token != own.first:
                own = own._replace(first=first.token)
                store.set(f"rank/{own.rank}", own.encode())
            _check_size(first, own)
    raise TimeoutError("rank 0 did not see all ranks come, or did not come itself")


def _read_member(store: Any, rank: int) -> Member:
    member = Member.parse(store.get(f"rank/{rank}"))
    if member.rank != rank:
        raise ValueError(f"the store has rank {member.rank} in the place of rank {rank}")
    return member


def _check_size(member: Member, own: Member) -> None:
    if member.size != own.size:
        raise RuntimeError(
            f"rank {own.rank} was given a world of {own.size} processes, but rank {member.rank} ({member}) one of "
            f"{member.size}: all must be given the same world_size, and two worlds need two ports"
        )


def _parse_world(store: Any, own: Member) -> list[Member]:
    members = [Member.parse(line) for line in store.get("world").split(b"\n")]
    if [member.rank for member in members] != list(range(len(members))):
        raise ValueError("the store has a list of the world that torchlite did not write")
    if len(members) != own.size:
        raise RuntimeError(
            f"rank {own.rank} was given a world of {own.size} processes, but at this address is one of {len(members)}"
        )
    return members


def _raise_if_absent(own: Member, members: list[Member]) -> None:
    there = members[own.rank]
    if there.token != own.token:
        raise RuntimeError(
            f"the world at this address is complete, with {there} as rank {own.rank}: a process that was restarted "
            "cannot join it again, and another world needs another port, or another file. Delete the file of an "
            "earlier run"
        )


def _looks(end: float) -> Iterator[None]:
    """Yield until the time is up, with pauses that grow."""
    pause = 5e-4
    while True:
        yield
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, _MAX_PAUSE)


def machine_name() -> str:
    """Return a name that is equal for processes which share memory.

    They have the same boot, host name, network and IPC namespace, and folder /dev/shm.
    """
    parts = [socket.gethostname()]
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            parts.append(file.read().strip())
        parts += [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "ipc")]
        parts.append(str(os.stat("/dev/shm").st_dev))
    except OSError:  # another system than Linux: the host name must do
        pass
    return _printable("/".join(parts))


def _printable(text: str) -> str:
    """Return a text as one word of ASCII."""
    return re.sub(r"[^!-~]", "_", text)[:255] or "_"
