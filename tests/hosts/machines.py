"""Machines for tests: network namespaces of this machine, with an address, a host name and a link each.

They are joined by a bridge in a namespace of its own, so nothing of this machine's network changes. Only root can make
them. `python -m tests.hosts.machines` prints why this machine cannot, or nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import Any

from tests.distributed.rank_launcher import MISSING, ROOT, environment


def _run(*words: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20)
    if ended.returncode:
        raise OSError(f"{' '.join(words)}: {ended.stderr.strip()}")


class Machines:
    """`size` machines, 10.77.41.1 and up, until the end of a with block. Processes on them end with it."""

    def __init__(self, size: int) -> None:
        self._size, self._mark = size, f"tl{os.getpid()}"
        self._switch, self._processes = f"{self._mark}s", list[subprocess.Popen]()

    def __enter__(self) -> Machines:
        try:
            _run("ip", "netns", "add", self._switch)
            _run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _run("ip", "-n", self._switch, "link", "set", "bridge", "up")
            for machine in range(self._size):
                self._add(machine)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, machine: int) -> None:
        name, port = self._name(machine), f"port{machine}"
        _run("ip", "netns", "add", name)
        link = ("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "-n", self._switch, *link)
        _run("ip", "-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _run("ip", "-n", name, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _run("ip", "-n", name, "link", "set", device, "up")

    def __exit__(self, *error: Any) -> None:
        for process in self._processes:
            _kill(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for name in (*map(self._name, range(self._size)), self._switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)

    def _name(self, machine: int) -> str:
        return f"{self._mark}m{machine}"

    def address(self, machine: int) -> str:
        """The machine's address."""
        return f"10.77.41.{machine + 1}"

    def start(self, machine: int, *command: str, **variables: str) -> subprocess.Popen:
        """Start a command on a machine. Its output and errors are one pipe."""
        # Without it UCX finds that the machines are one, and sends through shared memory.
        variables = {"UCX_TLS": "tcp", **variables}
        named = 'hostname "$0" && exec "$@"'
        inside = ["unshare", "--uts", "sh", "-c", named, f"machine{machine}", *command]
        process = subprocess.Popen(
            ["ip", "netns", "exec", self._name(machine), *inside],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**variables), cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def link(self, machine: int, state: str) -> None:
        """Set a machine's cable "up" or "down"."""
        _run("ip", "-n", self._switch, "link", "set", f"port{machine}", state)

    def disturb(self, machine: int, *how: str) -> None:
        """Delay or lose what a machine is sent, by the words of tc netem such as "delay", "20ms", "loss", "1%"."""
        _run("ip", "netns", "exec", self._switch, "tc", "qdisc", "add", "dev", f"port{machine}", "root", "netem", *how)


def _kill(process: subprocess.Popen) -> None:
    """Kill a process that still runs, with its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def why_not() -> str:
    """Why this machine can make no machines, or ""."""
    if MISSING:
        return MISSING
    if os.geteuid():
        return "only root can make network namespaces"
    for program in ("ip", "unshare", "hostname"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    try:
        with Machines(1):
            return ""
    except OSError as error:
        return f"network namespaces cannot be made: {error}"


if __name__ == "__main__":
    sys.stdout.write(why_not())
