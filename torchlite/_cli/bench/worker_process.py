"""Worker process that runs a contestant's workloads."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import subprocess
import threading
from typing import Any

from .contestants import _THREADS, ENGINE, WORKLOADS, Contestant, ContestantError, _environment


class Worker:
    """Worker process that runs a contestant's workloads; a context manager.

    A workload's rows are sequential: `make`, then `advance` until it returns an empty name, and any number of `measure`
    calls in between. Each raises ContestantError with the process's message.
    """

    def __init__(self, contestant: Contestant, threads: int, scale: float = 1.0, limit: float = 300.0):
        self.contestant, self.limit = contestant, limit
        environment = _environment(contestant.python) | {name: str(threads) for name in _THREADS}
        onednn = ""
        if contestant.engine:
            environment[ENGINE], _, dnn = contestant.engine.partition("+")
            onednn = "on" if dnn else "off"
        environment.update(contestant.variables)
        words = [contestant.module, "--serve", "--device", contestant.device or "cpu", "--scale", str(scale)]
        words += ["--threads", str(threads), "--onednn", onednn]
        self.process = subprocess.Popen(
            [contestant.python, str(WORKLOADS), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        if not contestant.device and hasattr(os, "sched_setaffinity"):
            # A library without a thread limit may use as many cores.
            os.sched_setaffinity(self.process.pid, sorted(os.sched_getaffinity(0))[:threads])
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.errors: collections.deque[str] = collections.deque(maxlen=5)
        self.readers = [
            threading.Thread(target=self._read_lines, args=(stream, keep), daemon=True)
            for stream, keep in ((self.process.stdout, self.answers.put), (self.process.stderr, self.errors.append))
        ]
        for reader in self.readers:
            reader.start()
        try:
            self.about: dict[str, Any] = self._wait_for_answer()
            if contestant.engine and self.about["engine"] != contestant.engine:
                raise ContestantError(f"{self.about['engine']} serves instead (python -m torchlite info says why)")
        except BaseException:
            self.__exit__()
            raise

    def _read_lines(self, stream: Any, keep: Any) -> None:
        with stream:
            for line in stream:
                keep(line)
        if stream is self.process.stdout:
            keep("")

    def _wait_for_answer(self) -> dict[str, Any]:
        try:
            line = self.answers.get(timeout=self.limit)
        except queue.Empty:
            self.process.kill()
            raise ContestantError(f"no answer within {self.limit:.0f} s")
        if not line:
            self.answers.put("")  # for later readers
            self.readers[1].join(1)  # until the last words are read; a child of the process may keep the stream open
            said = f": {self.errors[-1].strip()}" if self.errors else ""
            raise ContestantError(f"its process ended with status {self.process.wait()}{said}")
        answer = json.loads(line)
        if "failed" in answer:
            raise ContestantError(answer["failed"])
        return answer

    def send_request(self, **request: Any) -> dict[str, Any]:
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError:  # it has ended: the answer gives the reason
            pass
        return self._wait_for_answer()

    def make(self, workload: str) -> None:
        self.send_request(make=workload)

    def advance(self) -> str:
        return self.send_request(advance=1)["row"]

    def measure(self, seconds: float, least: int = 3) -> dict[str, float]:
        return self.send_request(measure=seconds, least=least)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
