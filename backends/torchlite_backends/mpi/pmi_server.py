"""Server of MPI's process manager protocol (PMI-1) for this process, over a store that all ranks share.

MPICH asks its launcher three things: to publish a value, to return the value of another rank, and a barrier. Here a
thread of the same process answers over a socket pair, and the store carries values and barriers. So no port is opened
in addition to the store's, and the store's secret protects the exchange.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

_MAX_LINE = 4096
_MAX_KEY, _MAX_VALUE = 64, 1024
_WORD = re.compile(rb"[!-~]*")  # what a line can carry as one value
_MAX_PAUSE = 0.02  # seconds between two looks at a barrier


class PMIServer:
    """The thread, and the variables by which MPI's library finds it.

    Args:
        store: The store of the world.
        rank: This process's rank.
        nodes: The machine of each rank, as a number.
        name: A name that no other world of these machines has: MPICH names shared memory by it.
    """

    def __init__(self, store: Any, rank: int, nodes: Sequence[int], name: str) -> None:
        self._store, self._size = store, len(nodes)
        self.local_rank_and_size = nodes[:rank].count(nodes[rank]), nodes.count(nodes[rank])
        self._mapping, self._barriers = node_mapping(nodes), 0
        self._socket, theirs = socket.socketpair()
        self._fail: Callable[[str], None] = lambda why: None
        self._leaving = False
        # MPI's library owns the other end, and closes it or not.
        self.variables = {"PMI_FD": str(theirs.detach()), "PMI_RANK": str(rank), "PMI_SIZE": str(self._size)}
        self._commands: dict[str, Callable[[dict[str, str]], str]] = {
            "init": self._init,
            "get_maxes": lambda words: f"cmd=maxes kvsname_max=256 keylen_max={_MAX_KEY} vallen_max={_MAX_VALUE}",
            "get_appnum": lambda words: "cmd=appnum appnum=0",
            "get_my_kvsname": lambda words: f"cmd=my_kvsname kvsname={name}",
            "get_universe_size": lambda words: f"cmd=universe_size size={self._size}",
            "put": self._put,
            "get": self._get,
            "barrier_in": self._barrier,
            "finalize": lambda words: "cmd=finalize_ack",
        }

    def start(self, fail: Callable[[str], None]) -> None:
        """Serve until MPI's library closes its end. An error of the store is passed to `fail`."""
        self._fail = fail
        threading.Thread(target=self._serve, name="torchlite PMI", daemon=True).start()

    def leave(self) -> None:
        """Answer barriers at once: the ranks have met, and the store may end before this process does."""
        self._leaving = True

    def answer_after_python(self) -> None:
        """Answer the last message in advance: MPICH sends it when the process ends, and no thread runs then."""
        with contextlib.suppress(OSError):  # the library has closed its end
            self._socket.sendall(b"cmd=finalize_ack rc=0\n")
        self._socket.detach()  # Python does not close it

    def _serve(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                while line := lines.readline(_MAX_LINE):
                    words = parse_line(line)
                    command = words["cmd"]
                    if command == "abort":  # the library then ends the process
                        return
                    if command not in self._commands:
                        raise ValueError(f"MPI's library asks for {command}, which no world without mpiexec has")
                    self._socket.sendall(f"{self._commands[command](words)}\n".encode())
        except Exception as error:  # raised by the thread that waits for MPI
            self._fail(str(error))

    def _init(self, words: dict[str, str]) -> str:
        if words.get("pmi_version") != "1":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1"
        return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"

    def _put(self, words: dict[str, str]) -> str:
        self._store.set(f"value/{words['key']}", words["value"])
        return "cmd=put_result rc=0 msg=success"

    def _get(self, words: dict[str, str]) -> str:
        key = words["key"]
        if key == "PMI_process_mapping":
            return f"cmd=get_result rc=0 msg=success value={self._mapping}"
        if not self._store.check([f"value/{key}"]):
            return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
        value = self._store.get(f"value/{key}")
        if len(value) > _MAX_VALUE or not _WORD.fullmatch(value):
            raise ValueError(f"the store has a value of {key} that MPI did not write")
        return f"cmd=get_result rc=0 msg=success value={value.decode()}"

    def _barrier(self, words: dict[str, str]) -> str:
        if not self._leaving:
            self._barriers += 1
            name, pause = f"barrier/{self._barriers}", 5e-4
            came = self._store.add(name, 1)
            while came < self._size and not self._leaving:
                time.sleep(pause)
                pause = min(pause * 1.5, _MAX_PAUSE)
                came = self._store.add(name, 0)
        return "cmd=barrier_out rc=0"


def parse_line(line: bytes) -> dict[str, str]:
    """Return the words of a line of PMI-1, `cmd=name key=value ...`. ValueError for anything else."""
    if not line.endswith(b"\n"):
        raise ValueError("a line of MPI's library is cut or too long")
    found: dict[str, str] = {}
    for word in line.split():
        name, sign, value = word.partition(b"=")
        if not sign or not _WORD.fullmatch(word):
            raise ValueError(f"MPI's library wrote {line[:100]!r}, which is no line of PMI-1")
        found[name.decode()] = value.decode()
    if "cmd" not in found:
        raise ValueError(f"MPI's library wrote {line[:100]!r}, which has no command")
    return found


def node_mapping(nodes: Sequence[int]) -> str:
    """Return PMI's description of which ranks are on one machine: blocks of first machine, machines, ranks on each.

    One rank a machine, which is right everywhere though slower, if the description is too long.
    """
    blocks: list[list[int]] = []
    for node in nodes:
        if blocks and blocks[-1][0] == node:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1])
    text = f"(vector,{','.join(f'({node},1,{count})' for node, count in blocks)})"
    return text if len(text) < _MAX_VALUE else f"(vector,(0,{len(nodes)},1))"
