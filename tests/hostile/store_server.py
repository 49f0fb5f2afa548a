"""Strangers at a TCPStore: garbage, floods, slow clients, a master that stops. `python -m tests.hostile.store_server`.

The master is a separate process, on 127.0.0.1. During and after each attack an authorized client sets and gets values;
the figures are its slowest answer, and the memory of the master.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import torchlite.distributed as dist
from torchlite.distributed._tcp_store_protocol import GREETING, NONCE, SECRET, compute_proof

_MASTER = """
import sys, time
from datetime import timedelta
import torchlite.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60))
print(store.port, flush=True)
sys.stdin.read()
"""


class Master:
    """A process with a store that holds `files` open files at most."""

    def __init__(self, secret: str = "", files: int | None = None) -> None:
        limit = None if files is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MASTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, SECRET: secret}, preexec_fn=limit,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.secret = secret.encode()

    def client(self, seconds: float = 30) -> dist.TCPStore:
        """A rightful client."""
        limit = timedelta(seconds=seconds)
        return dist.TCPStore("127.0.0.1", self.port, None, False, limit, _secret=self.secret)

    def megabytes(self) -> float:
        """Memory that the process has at the moment."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20

    def __enter__(self) -> Master:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def stranger(master: Master, known: bool = False) -> socket.socket:
    """A connection that has not shaken hands, or has. ConnectionError where the master wants none."""
    made = socket.create_connection(("127.0.0.1", master.port), 10)
    try:
        if known:
            greeting = made.recv(GREETING, socket.MSG_WAITALL)
            ours = bytes(NONCE)
            made.sendall(ours + compute_proof(master.secret, b"client", greeting[-NONCE:], ours))
            if len(made.recv(32, socket.MSG_WAITALL)) < 32:
                raise ConnectionError("the master closed the connection")
    except OSError:
        made.close()
        raise
    return made


def answers(store: dist.TCPStore, number: int) -> float:
    """Seconds for a value to go and come back."""
    begin = time.perf_counter()
    store.set("rightful", str(number))
    assert store.get("rightful") == str(number).encode()
    return time.perf_counter() - begin


def frame(draw: random.Random) -> bytes:
    """Noise, or a message with damaged bytes, lengths or commands."""
    words = [draw.choice([b"set", b"get", b"add", b"append", b"keys", b"push", b"pop", b"_put", b"__init__", b""])]
    words += [draw.randbytes(draw.randrange(12)) for _ in range(draw.randrange(4))]
    body = bytearray(b"".join(struct.pack("<Q", len(word)) + word for word in words))
    how = draw.randrange(5)
    if how == 0:
        return draw.randbytes(draw.randrange(1, 200))
    if how == 1:
        return struct.pack("<I", draw.choice([2**32 - 1, 2**31, (32 << 20) + 1])) + body
    if how == 2 and len(body) >= 8:
        struct.pack_into("<Q", body, 0, draw.choice([2**62, 2**64 - 1, len(body)]))
    for _ in range(draw.randrange(3) if body else 0):
        body[draw.randrange(len(body))] = draw.randrange(256)
    return struct.pack("<I", len(body)) + body


def garbage(master: Master, count: int, seed: int) -> float:
    """Frames of noise, before and after the handshake: the slowest answer in between."""
    draw, store, slowest = random.Random(seed), master.client(), 0.0
    made = stranger(master, True)
    for i in range(count):
        if draw.random() < 0.2:
            made.close()
            made = stranger(master, draw.random() < 0.8)
        with contextlib.suppress(OSError):
            made.settimeout(5)
            made.sendall(frame(draw))
            made.setblocking(False)
            made.recv(4096)
        if i % 50 == 0:
            slowest = max(slowest, answers(store, i))
    made.close()
    return max(slowest, answers(master.client(), count))


def idle(master: Master, count: int) -> float:
    """Connections that say nothing, all open at once."""
    store, slowest, made = master.client(), 0.0, []
    for i in range(count):
        made.append(stranger(master))
        if i % 10 == 0:
            slowest = max(slowest, answers(store, i), answers(master.client(), i))
    for one in made:
        one.close()
    return max(slowest, answers(master.client(), count))


def connects(master: Master, count: int) -> float:
    """Connections that end at once, one after the other."""
    store, slowest = master.client(), 0.0
    for i in range(count):
        stranger(master).close()
        if i % 20 == 0:
            slowest = max(slowest, answers(store, i))
    return max(slowest, answers(master.client(), count))


def slow(master: Master, count: int, seconds: float) -> float:
    """Clients that declare a long frame and send a byte now and then, and such that never read their answers."""
    store, slowest, made = master.client(), 0.0, []
    store.set("long", bytes(4 << 20))
    words = b"".join(struct.pack("<Q", len(word)) + word for word in (b"get", b"long"))
    for i in range(count):
        made.append(stranger(master, True))
        made[-1].sendall(struct.pack("<I", 32 << 20) if i % 2 else struct.pack("<I", len(words)) + words)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in made[1::2]:
            with contextlib.suppress(OSError):
                one.send(b"x")
        slowest = max(slowest, answers(store, 0))
        time.sleep(0.02)
    for one in made:
        one.close()
    return max(slowest, answers(master.client(), count))


# The end of both programs that follow: threads that start, and run until this process closes the pipe.
_GOES_ON = """
for _ in range(count):
    threading.Thread(target=attack, daemon=True).start()
for _ in range(count):
    begun.acquire(timeout=20)
print("begun", flush=True)
sys.stdin.read()
"""
_HOARDER = """
import socket, struct, sys, threading, time
from tests.hostile.store_server import Master, stranger
master = Master.__new__(Master)
master.port, master.secret, count, how = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3]), sys.argv[4]
begun = threading.Semaphore(0)

def attack():
    first = True
    while True:
        try:
            made = stranger(master, True)
            made.settimeout(60)
            made.sendall(struct.pack("<I", 32 << 20) + bytes((32 << 20) - 100_000))
            if first:
                begun.release()
            first = False
            while how == "trickle":
                made.send(b"x")
                time.sleep(0.02)
            made.recv(1)  # until it is dropped
            if how == "hold":
                time.sleep(600)
        except OSError:
            if first:
                begun.release()
            first = False
            if how == "hold":
                time.sleep(600)
            time.sleep(0.01)

"""


def hoard(master: Master, count: int, how: str, sets: int = 10) -> tuple[float, float]:
    """Clients of another process that hold frames of 32 MB which they do not finish: they `hold` them, `trickle` bytes,
    or `return` when they are dropped. Seconds of the slowest of the rightful client's sets of 4 MB, and of its
    small answers.
    """
    store, words = master.client(20), [str(master.port), master.secret.decode(), str(count), how]
    large, small = 0.0, 0.0
    process = subprocess.Popen(
        [sys.executable, "-c", _HOARDER + _GOES_ON, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        for i in range(sets):
            begin = time.perf_counter()
            store.set(f"large/{i % 4}", bytes([i]) * (4 << 20))
            large = max(large, time.perf_counter() - begin)
            small = max(small, answers(store, i))
            assert store.get(f"large/{i % 4}") == bytes([i]) * (4 << 20)
        assert answers(master.client(), sets) < 20
    finally:
        process.kill()
        process.communicate()
    return large, small


_PIPELINED: dict[str, list[bytes]] = {
    "count": [b"count"],
    "keys": [b"keys"],
    "append": [b"append", b"long", b""],
    "push": [b"push", b"queue", b""],
    "pop": [b"pop", b"queue"],
    "length": [b"length", b"queue"],
    "delete": [b"delete", b"absent"],
    "get": [b"get", *[b"long"] * 32],
    "get one that is absent": [b"get", *[b"long"] * 2047, b"absent"],
    "check": [b"check", *[b"long"] * 2048],
    "compare_set": [b"compare_set", b"long", b"", b""],
    "add": [b"add", b"long", b"1"],
    "many parts": [b"check", *[b""] * 100_000],
    "unknown": [bytes(100_000)],
}
_PIPELINER = """
import socket, sys, threading
from tests.hostile.store_server import Master, _PIPELINED, message, stranger
master = Master.__new__(Master)
master.port, master.secret, count, name, how = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3]), *sys.argv[4:]
one = message(_PIPELINED[name])
block = one * max(1, (1 << 17) // len(one))
begun = threading.Semaphore(0)

def read(made):
    try:
        while made.recv(1 << 20):
            pass
    except OSError:
        pass

def attack():
    first = True
    while True:
        try:
            made = stranger(master, True)
            made.settimeout(600)
            if how == "read":
                threading.Thread(target=read, args=(made,), daemon=True).start()
            made.sendall(block)
            if first:
                begun.release()
            first = False
            while True:
                if how == "return":
                    made.close()
                made.sendall(block)
        except OSError:
            if first:
                begun.release()
            first = False

"""


def message(parts: list[bytes]) -> bytes:
    """A frame with these byte strings."""
    body = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    return struct.pack("<I", len(body)) + body


def fill(master: Master, keys: int) -> None:
    """So many keys, a value of 7 MiB that grew, and a queue of 7 MiB."""
    with stranger(master, True) as made:
        for begin in range(0, keys, 1000):
            made.sendall(b"".join(message([b"set", b"k%d" % i, b""]) for i in range(begin, min(begin + 1000, keys))))
            left = 12 * min(1000, keys - begin)
            while left:
                left -= len(made.recv(left))
        for parts in ([b"set", b"long", bytes(7 << 20)], *[[b"push", b"queue", bytes(1 << 10)]] * 7000):
            made.sendall(message(parts))
            assert len(made.recv(12, socket.MSG_WAITALL)) == 12


def pipelines(master: Master, name: str, count: int, how: str, rounds: int = 11) -> float:
    """Clients of another process that send messages of a kind (`_PIPELINED`) one behind the other, and `read` or
    `ignore` the answers, or close and `return`: the slowest answer to clients that were there, or are new.
    """
    store, slowest = master.client(20), 0.0
    words = [str(master.port), master.secret.decode(), str(count), name, how]
    process = subprocess.Popen(
        [sys.executable, "-c", _PIPELINER + _GOES_ON, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        for i in range(rounds):
            slowest = max(slowest, answers(store, i))
            if i % 10 == 0:
                begin = time.perf_counter()
                answers(master.client(20), i)
                slowest = max(slowest, time.perf_counter() - begin)
    finally:
        process.kill()
        process.communicate()
    return slowest


def unknown(master: Master, count: int) -> float:
    """Clients that do not know the secret, and send megabytes all the same: the slowest answer."""
    store, slowest = master.client(), 0.0
    for i in range(count):
        with contextlib.suppress(OSError), stranger(master) as made:
            made.settimeout(5)
            made.sendall(bytes(4 << 20))
        slowest = max(slowest, answers(store, i))
    return slowest


def full(master: Master, count: int) -> float:
    """More clients than a master with few descriptors takes: later ones get an error, and connect when others leave."""
    store, made, refused = master.client(), [], 0
    for _ in range(count):
        try:
            made.append(stranger(master, True))
        except OSError:
            refused += 1
    assert refused, "nobody was refused"
    slowest = answers(store, 0)
    for one in made:
        one.close()
    return max(slowest, answers(master.client(), count))


def stops(master: Master, limit: float) -> dict[str, float]:
    """How long each call takes while the master is stopped, against a timeout of `limit` seconds; then it goes on."""
    calls: dict[str, Any] = {
        "get": lambda s: s.get("a"), "set": lambda s: s.set("a", "1"), "add": lambda s: s.add("n", 1),
        "wait": lambda s: s.wait(["a"]), "check": lambda s: s.check(["a"]), "append": lambda s: s.append("a", "1"),
        "compare_set": lambda s: s.compare_set("a", "", "1"), "delete_key": lambda s: s.delete_key("a"),
        "num_keys": lambda s: s.num_keys(), "multi_get": lambda s: s.multi_get(["a"]),
        "multi_set": lambda s: s.multi_set(["a"], ["1"]), "queue_pop": lambda s: s.queue_pop("q"),
        "connect": lambda s: s.clone(),
    }  # fmt: skip
    stores, took = {name: master.client(limit) for name in calls}, {}
    master.process.send_signal(signal.SIGSTOP)
    try:
        for name, call in calls.items():
            begin = time.perf_counter()
            try:
                call(stores[name])
            except dist.DistError:
                took[name] = time.perf_counter() - begin
            else:
                raise AssertionError(f"{name} was answered by a stopped master")
    finally:
        master.process.send_signal(signal.SIGCONT)
    took["after"] = max(answers(store, 0) for store in stores.values())
    return took


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.store_server", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000, help="frames of garbage")
    arguments = parser.parse_args()
    for secret in ("", "a secret"):
        with Master(secret) as master:
            print(f"secret {secret!r}: {master.megabytes():.1f} MiB")
            for name, attack in (
                ("garbage", lambda m=master: garbage(m, arguments.count, arguments.seed)),
                ("500 idle", lambda m=master: idle(m, 500)),
                ("2000 connects", lambda m=master: connects(m, 2000)),
                ("60 slow", lambda m=master: slow(m, 60, 10)),
            ):
                begin, slowest = time.perf_counter(), attack()
                print(
                    f"{name}: {time.perf_counter() - begin:.1f} s, slowest answer {slowest * 1000:.1f} ms, "
                    f"{master.megabytes():.1f} MiB",
                    flush=True,
                )
            for count in (16, 100):
                for how in ("hold", "trickle", "return"):
                    large, small = hoard(master, count, how)
                    print(
                        f"{count} hoarders ({how}): slowest set of 4 MB {large:.3f} s, slowest answer {small:.3f} s, "
                        f"{master.megabytes():.1f} MiB",
                        flush=True,
                    )
            fill(master, 100_000)
            for name in _PIPELINED:
                for count, how in ((1, "read"), (1, "ignore"), (50, "read"), (50, "ignore"), (50, "return")):
                    slowest = pipelines(master, name, count, how)
                    print(
                        f"{count} that pipeline {name} ({how}): slowest answer {slowest * 1000:.1f} ms, "
                        f"{master.megabytes():.1f} MiB",
                        flush=True,
                    )
            print("stopped, 0.5 s:", {name: f"{seconds:.3f}" for name, seconds in stops(master, 0.5).items()})
    with Master(files=64) as master:
        print(f"full house: slowest answer {full(master, 100) * 1000:.1f} ms, {master.megabytes():.1f} MiB")


if __name__ == "__main__":
    main()
