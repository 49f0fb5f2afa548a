"""Watch the local processes of `rank_wrapper.py` and mpiexec's proxies by pidfd: find the first killed one, and kill
them.

`mpiexec` reports only a number for a killed process, and waits forever for a stopped one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from typing import Any


class ProcessWatchers:
    """Process descriptors (pidfd), which are safe against reuse of process ids. Linux has them."""

    def __init__(self) -> None:
        self._ranks: dict[int, dict[str, Any]] = {}  # the processes' messages, by descriptor
        self._parents: dict[int, int] = {}  # descriptors of their parents, by process id
        self._helpers = select.poll() if hasattr(select, "poll") else None  # of the parents' ends
        self._lock = threading.Lock()
        self._ends = select.epoll() if hasattr(select, "epoll") else None

    def add(self, told: dict[str, Any]) -> None:
        """Watch the process that sent this message, and its parent."""
        with self._lock, contextlib.suppress(OSError, AttributeError):  # it has ended, or the system cannot
            if self._ends is None or self._ends.closed:
                return
            descriptor = os.pidfd_open(told["watcher"])
            self._ranks[descriptor] = told
            self._ends.register(descriptor, select.EPOLLIN)
            if told["parent"] not in self._parents:
                descriptor = self._parents[told["parent"]] = os.pidfd_open(told["parent"])
                self._ends.register(descriptor, select.EPOLLIN)
                if self._helpers is not None:
                    self._helpers.register(descriptor, select.POLLIN)

    def lost(self, known: set[int]) -> dict[str, Any] | None:
        """Return the message of the rank that ended first without a known cause, or `helper` if that ended earlier.

        `mpiexec` kills the others then. The kernel lists ends in order.
        """
        with self._lock:
            if self._ends is None or not self._ranks:
                return None
            for descriptor, _ in self._ends.poll(0, len(self._ranks) + len(self._parents)):
                told = self._ranks.get(descriptor)
                if told is None:
                    return self._describe_proxy(descriptor)
                if told["rank"] not in known:
                    return told
        return None

    def proxy_ended_before(self, rank: int) -> dict[str, Any] | None:
        """Return the proxy of `mpiexec` if it ended before the rank that it had started: MPI fails without it."""
        with self._lock:
            if self._ends is None or not self._ranks:
                return None
            for descriptor, _ in self._ends.poll(0, len(self._ranks) + len(self._parents)):
                told = self._ranks.get(descriptor)
                if told is not None and told["rank"] == rank:
                    return None
                if told is None and rank in (proxy := self._describe_proxy(descriptor))["ranks"]:
                    return proxy
        return None

    def helper(self) -> dict[str, Any] | None:
        """Return the proxy of `mpiexec` that ended before its processes, and their ranks."""
        with self._lock:
            if self._helpers is None or not self._parents:
                return None
            for descriptor, _ in self._helpers.poll(0):
                told = self._describe_proxy(descriptor)
                ended = select.poll()
                for rank, said in self._ranks.items():
                    if said["parent"] == told["helper"]:
                        ended.register(rank, select.POLLIN)
                if len(ended.poll(0)) < len(told["ranks"]):
                    return told
        return None

    def _describe_proxy(self, descriptor: int) -> dict[str, Any]:
        number = next(number for number, one in self._parents.items() if one == descriptor)
        return {
            "helper": number,
            "ranks": sorted(told["rank"] for told in self._ranks.values() if told["parent"] == number),
        }

    def kill(self) -> None:
        """Kill remaining processes, parents first. A program ends with its wrapper, even if it is stopped."""
        with self._lock:
            for descriptor in (*self._parents.values(), *self._ranks):
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptors."""
        with self._lock:
            if self._ends is not None:
                self._ends.close()
            for descriptor in (*self._parents.values(), *self._ranks):
                os.close(descriptor)
            self._ranks, self._parents = {}, {}
