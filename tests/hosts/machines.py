"""Machines for tests: network namespaces of this machine, each with an address, a host name, a link, and SSH if wanted.

They are joined by a bridge in a namespace of its own, so nothing of this machine's network changes. Only root can make
them. `python -m tests.hosts.machines` prints why this machine cannot, or nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.distributed.rank_launcher import MISSING, ROOT, environment


def _run(*words: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20)
    if ended.returncode:
        raise OSError(f"{' '.join(words)}: {ended.stderr.strip()}")


class Machines:
    """`size` machines, 10.77.41.1 and up, until the end of a with block. Processes on them end with it.

    Each knows the names of all, node1 and up. Packets arrive `late` milliseconds late, and `lost` percent of them never
    (tests/hosts/late_link.py).
    """

    def __init__(self, size: int, late: float = 0, lost: float = 0) -> None:
        self._size, self._mark, self._late, self._lost = size, f"tl{os.getpid()}", late, lost
        self._switch, self._processes = f"{self._mark}s", list[subprocess.Popen]()
        self._temporary = tempfile.TemporaryDirectory(prefix="torchlite_machines_")
        self.folder = Path(self._temporary.name)

    def __enter__(self) -> Machines:
        names = [f"{self.address(machine)} node{machine + 1}\n" for machine in range(self._size)]
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        try:
            _run("ip", "netns", "add", self._switch)
            _run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _run("ip", "-n", self._switch, "link", "set", "bridge", "up")
            for machine in range(self._size):
                self._add(machine)
            if self._late or self._lost:
                self._carry_late()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _add(self, machine: int) -> None:
        name, port = self._name(machine), f"port{machine}"
        _run("ip", "netns", "add", name)
        if self._late or self._lost:
            _run("ip", "-n", name, "tuntap", "add", "dev", "eth0", "mode", "tun")
            _run("ip", "-n", name, "link", "set", "eth0", "mtu", "9000", "txqueuelen", "10000")
        else:
            link = ("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            _run("ip", "-n", self._switch, *link)
            _run("ip", "-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _run("ip", "-n", name, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _run("ip", "-n", name, "link", "set", device, "up")

    def _carry_late(self) -> None:
        machines = [f"{self.address(machine)}={self._name(machine)}" for machine in range(self._size)]
        program = [sys.executable, str(ROOT / "tests" / "hosts" / "late_link.py")]
        carrier = subprocess.Popen(
            ["nice", "-n", "-20", *program, str(self._late), str(self._lost), "1", *machines],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._processes.append(carrier)
        assert carrier.stdout is not None
        said = carrier.stdout.readline()
        if said != "ready\n":
            raise OSError(f"packets cannot be carried late: {said}{carrier.communicate(timeout=20)[0]}")

    def __exit__(self, *error: Any) -> None:
        for process in self._processes:
            _kill(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for name in (*map(self._name, range(self._size)), self._switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)
        self._temporary.cleanup()

    def _name(self, machine: int) -> str:
        return f"{self._mark}m{machine}"

    def address(self, machine: int) -> str:
        """The machine's address."""
        return f"10.77.41.{machine + 1}"

    def start(self, machine: int, *command: str, **variables: str) -> subprocess.Popen:
        """Start a command on a machine. Its output and errors are one pipe."""
        # Without it UCX finds that the machines are one, and sends through shared memory.
        variables = {"UCX_TLS": "tcp", **variables}
        named = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'
        hosts = str(self.folder / "hosts")
        inside = ["unshare", "--uts", "--mount", "sh", "-c", named, f"node{machine + 1}", hosts, *command]
        process = subprocess.Popen(
            ["ip", "netns", "exec", self._name(machine), *inside],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**variables), cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def kill(self, machine: int) -> None:
        """Kill all processes of a machine."""
        found = subprocess.run(["ip", "netns", "pids", self._name(machine)], capture_output=True, text=True, timeout=20)
        for process in found.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)

    def serve_ssh(self) -> dict[str, str]:
        """Start a server of SSH on each machine; return the variables with which its commands reach the others."""
        server, keys = shutil.which("sshd") or "/usr/sbin/sshd", self.folder / "ssh"
        keys.mkdir(mode=0o700)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "user"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name))
        public = " ".join((keys / "host.pub").read_text().split()[:2])
        names = [f"node{machine + 1},{self.address(machine)}" for machine in range(self._size)]
        (keys / "known_hosts").write_text("".join(f"{name} {public}\n" for name in names))
        (keys / "config").write_text(
            f"IdentityFile {keys}/user\nUserKnownHostsFile {keys}/known_hosts\nBatchMode yes\n"
            "StrictHostKeyChecking yes\nLogLevel ERROR\n"
        )
        (keys / "sshd_config").write_text(
            f"HostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
        )
        (self.folder / "bin").mkdir()
        wrapper = self.folder / "bin" / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {keys}/config "$@"\n')
        wrapper.chmod(0o755)
        for machine in range(self._size):
            self.start(machine, server, "-D", "-e", "-f", str(keys / "sshd_config"))
        found = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        for machine in range(self._size):
            self._wait_for_ssh(f"node{machine + 1}", found)
        return found

    def _wait_for_ssh(self, name: str, variables: dict[str, str]) -> None:
        limit = time.monotonic() + 20
        while True:
            asked = self.start(0, "ssh", name, "true", **variables)
            said, _ = asked.communicate(timeout=20)
            if asked.returncode == 0:
                return
            if time.monotonic() > limit:
                raise OSError(f"the server of SSH on {name} does not answer: {said}")
            time.sleep(0.2)

    def link(self, machine: int, state: str) -> None:
        """Set a machine's cable "up" or "down"."""
        _run("ip", "-n", self._switch, "link", "set", f"port{machine}", state)

    def limit(self, rate: str) -> None:
        """Limit what each machine sends, such as "1gbit" (tc tbf)."""
        how = ("rate", rate, "burst", "128kb", "latency", "100ms")
        for machine in range(self._size):
            _run("ip", "netns", "exec", self._name(machine), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *how)


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
    for program in ("ip", "unshare", "hostname", "mount"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    try:
        with Machines(1):
            return ""
    except OSError as error:
        return f"network namespaces cannot be made: {error}"


if __name__ == "__main__":
    sys.stdout.write(why_not())
