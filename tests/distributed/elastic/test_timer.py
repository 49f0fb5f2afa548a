"""Timers end processes that stay too long in a block."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.distributed.rank_launcher import ROOT, environment
from torchlite.distributed.elastic import timer
from torchlite.distributed.elastic.timer.api import RequestQueue, TimerRequest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="named pipes and signals of Linux")

# A process that is in time once, and then sleeps in a block of a tenth of a second.
SLEEPS = """
import sys, time
from torchlite.distributed.elastic import timer
timer.configure(timer.FileTimerClient(sys.argv[1], int(sys.argv[2])))
with timer.expires(60, "in time"):
    pass
with timer.expires(0.1):
    time.sleep(120)
"""


def start(path, number):
    command = [sys.executable, "-c", SLEEPS, str(path), str(number)]
    return subprocess.Popen(command, cwd=ROOT, env=environment())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_pipe(tmp_path, number):
    path, seen = str(tmp_path / "pipe"), []
    server = timer.FileTimerServer(path, "run", max_interval=0.1, log_event=lambda name, _: seen.append(name))
    server.start()
    process = start(path, int(number))
    try:
        assert process.wait(60) == -number
    finally:
        process.kill()
        process.wait()
        server.stop()
    assert seen == ["watchdog started", "timer expired", "kill worker process", "watchdog stopped"]
    assert not os.path.exists(path) and server.get_expired_timers(1e18) == {}
    with pytest.raises(BrokenPipeError, match="FIFO is not available"):
        timer.FileTimerClient(path).acquire("late", 1.0)


def test_lines_of_a_pipe(tmp_path):
    path = str(tmp_path / "pipe")
    server = timer.FileTimerServer(path, "run")
    client = timer.FileTimerClient(path, 0)  # which sends no signal
    client.acquire("a", 1e12)
    client.acquire("b", 5.0)
    client.acquire("c", 6.0)
    client.release("c")
    with open(path, "wb", buffering=0) as pipe:
        for line in (b"no JSON\n", b'{"version": 1}\n', b'{"version": 2, "pid": 1, "scope_id": "x", '
                     b'"expiration_time": 0, "signal": 9}\n', b'{"version": 1, "pid": -1, "scope_id": "x", '
                     b'"expiration_time": 0, "signal": 9}\n', b"[]\n"):  # fmt: skip
            pipe.write(line)
    with pytest.raises(RuntimeError, match="bytes is not supported"):
        client.acquire("x" * 5000, 1.0)
    server.register_timers(server._read_requests(1))
    mine = os.getpid()
    assert server.get_expired_timers(10) == {mine: [timer.FileTimerRequest(mine, "b", 5.0, 0)]}
    assert server.get_expired_timers(1e13).keys() == {mine}
    assert abs(server.get_last_progress_time() - time.time()) < 60
    server.run_once()
    assert server.get_expired_timers(1e13) == {} and not os.path.exists(path)


def sleep_in_a_block(requests):
    timer.configure(timer.LocalTimerClient(requests))
    with timer.expires(0.1, "too short"):
        time.sleep(120)


def test_a_queue():
    context = multiprocessing.get_context("spawn")
    requests = context.Queue()
    server = timer.LocalTimerServer(requests, max_interval=0.1)
    server.start()
    process = context.Process(target=sleep_in_a_block, args=(requests,))
    process.start()
    process.join(60)
    server.stop()
    assert process.exitcode == -signal.SIGKILL
    ended = TimerRequest(process.pid, "again", 1.0)
    server.register_timers([ended, TimerRequest(process.pid, "open", 1e18)])
    assert server.get_expired_timers(2.0) == {process.pid: [ended]}
    assert server._reap_worker(process.pid)  # which has ended
    server.clear_timers({process.pid})
    assert server.get_expired_timers(1e19) == {}


class Listed(RequestQueue):
    """Requests that a test gives."""

    def __init__(self, requests):
        self.requests = requests

    def size(self):
        return len(self.requests)

    def get(self, size, timeout):
        found, self.requests = self.requests[:size], self.requests[size:]
        return found


class Server(timer.LocalTimerServer):
    def __init__(self, requests):
        super().__init__(multiprocessing.Queue())
        self._request_queue, self.ended = Listed(requests), []

    def _reap_worker(self, worker_id):
        self.ended.append(worker_id)
        if worker_id == 1:
            raise ValueError("cannot")
        return worker_id != 2


def test_a_servers_look():
    """A process that cannot be ended is tried again; an error drops it."""
    server = Server([TimerRequest(n, "x", 1.0) for n in (1, 2, 3)])
    server._run_watchdog()
    server._run_watchdog()
    assert server.ended == [1, 2, 3, 2]


def test_blocks_without_a_client(monkeypatch):
    monkeypatch.setattr(timer.api._Client, "of_process", None)
    with pytest.raises(RuntimeError, match="Configure timer client"):
        with timer.expires(1):
            pass
    requests = multiprocessing.Queue()
    with pytest.raises(KeyError), timer.expires(1e9, client=timer.LocalTimerClient(requests)):
        raise KeyError
    begun, ended = requests.get(timeout=10), requests.get(timeout=10)
    assert begun.scope_id == ended.scope_id and f"{os.path.basename(__file__)}#" in begun.scope_id
    assert begun.expiration_time > time.time() and ended.expiration_time == -1
