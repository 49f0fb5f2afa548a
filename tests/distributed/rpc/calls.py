"""A worker of RPC: `calls.py CASE ADDRESS RANK SIZE`. Rank 0 runs the case, the others answer."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

import torchlite as torch
import torchlite.distributed.rpc as rpc


class Counter:
    def __init__(self, start):
        self.total = start

    def add(self, by):
        self.total += by
        return self.total

    @rpc.functions.async_execution
    def add_later(self, by):
        return rpc.rpc_async("worker0", max, (by, self.total))


class LongError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def fail(kind, *words):
    raise kind(*words)


def pause(seconds):
    time.sleep(seconds)
    return seconds


def end():
    os._exit(3)


def bounce(count, here, there):
    """Each call waits for the next one, on the other worker."""
    return 0 if count == 0 else 1 + rpc.rpc_sync(there, bounce, (count - 1, there, here))


@rpc.functions.async_execution
def chained(to, x):
    return rpc.rpc_async(to, torch.add, (x, 1)).then(lambda done: done.wait() * 2)


@rpc.functions.async_execution
def not_a_future():
    return 1


def owned():
    from torchlite.distributed.rpc import _state

    return len(_state.agent()._owned)


def read(rref):
    return rref.to_here()


def own_value(rref):
    assert rref.is_owner()
    return rref.local_value()


def values():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(rpc.rpc_sync("worker1", torch.add, (x, 1)), x + 1)
    assert rpc.rpc_sync(1, max, (1, 2)) == 2 and rpc.rpc_sync(rpc.get_worker_info("worker2"), os.getpid) != os.getpid()
    later = [rpc.rpc_async(f"worker{i % 3}", torch.mul, (x, i)) for i in range(30)]
    assert all(torch.equal(one, x * i) for i, one in enumerate(torch.futures.wait_all(later)))
    big = torch.ones(3_000_000)
    both = [rpc.rpc_async("worker1", torch.neg, (big,)) for _ in range(4)]
    assert all(one.wait().sum() == -3_000_000 for one in both)
    assert rpc.rpc_sync("worker1", sorted, ([3, 1, 2],), {"reverse": True}) == [3, 2, 1]
    assert repr(rpc.get_worker_info()) == "WorkerInfo(id=0, name=worker0)"


def errors():
    with pytest.raises(ValueError, match=r"On WorkerInfo\(id=1, name=worker1\):\nValueError\('so'\)\nTraceback"):
        rpc.rpc_sync("worker1", fail, (ValueError, "so"))
    with pytest.raises(RuntimeError, match="Failed to create original exception type"):
        rpc.rpc_sync("worker1", fail, (LongError, 1, 2))
    rref = rpc.remote("worker1", fail, (KeyError, "there"))
    with pytest.raises(KeyError, match="there"):
        rref.to_here()
    with pytest.raises(RuntimeError, match=r"RPC ran for more than set timeout \(100 ms\) and will now be marked"):
        rpc.rpc_sync("worker1", pause, (1.0,), timeout=0.1)
    assert rpc.rpc_sync("worker1", pause, (0.2,), timeout=0) == 0.2
    with pytest.raises(RuntimeError, match="async_execution must return a torch.futures.Future object"):
        rpc.rpc_sync("worker1", not_a_future)
    with pytest.raises(RuntimeError, match="Unknown destination worker nobody"):
        rpc.rpc_sync("nobody", max, (1, 2))
    with pytest.raises(TypeError, match="function should be callable"):
        rpc.rpc_async("worker1", 1)
    with pytest.raises(ValueError, match="Cannot get WorkerInfo from name 1.5"):
        rpc.remote(1.5, max, (1, 2))
    with pytest.raises(TypeError, match="pickle"):
        rpc.rpc_sync("worker1", threading.Lock)
    with pytest.raises(RuntimeError, match="already initialized"):
        rpc.init_rpc("worker0", rank=0, world_size=1)


def nested():
    """More calls wait for each other than a worker has threads (two)."""
    assert rpc.rpc_sync("worker1", bounce, (12, "worker1", "worker2")) == 12
    later = [rpc.rpc_async("worker1", bounce, (5, "worker1", "worker0")) for _ in range(8)]
    assert torch.futures.wait_all(later) == [5] * 8
    assert rpc.rpc_sync("worker1", chained, ("worker2", torch.ones(2))).tolist() == [4.0, 4.0]
    again = rpc.rpc_async("worker1", pause, (0.1,)).then(lambda _: rpc.rpc_sync("worker1", max, (1, 2), timeout=20))
    assert again.wait() == 2  # a callback waits for a reply that the same connection brings


def references():
    before = rpc.rpc_sync("worker1", owned)
    counter = rpc.remote("worker1", Counter, (5,))
    assert (counter.owner(), counter.owner_name()) == (rpc.get_worker_info("worker1"), "worker1")
    assert not counter.is_owner() and counter.to_here().total == 5 and counter.confirmed_by_owner()
    assert counter.rpc_sync().add(2) == 7 and counter.rpc_async().add(1).wait() == 8
    assert counter.remote().add(1).to_here() == 9
    assert counter.rpc_sync().add_later(4) == 9
    assert rpc.rpc_sync("worker2", read, (counter,)).total == 9
    assert rpc.rpc_sync("worker1", own_value, (counter,)).total == 9
    with pytest.raises(RuntimeError, match=r"can't call localValue\(\) on user WorkerInfo\(id=0"):
        counter.local_value()
    with pytest.raises(RuntimeError, match="can only be pickled when using RPC"):
        __import__("pickle").dumps(counter)
    mine = rpc.RRef(torch.ones(2))
    assert mine.is_owner() and mine.local_value() is mine.to_here()
    assert rpc.rpc_sync("worker2", read, (mine,)).tolist() == [1.0, 1.0]
    slow = rpc.remote("worker1", pause, (0.3,))
    assert rpc.rpc_sync("worker2", read, (slow,)) == 0.3
    del counter, slow
    __import__("gc").collect()
    limit = time.monotonic() + 20
    while rpc.rpc_sync("worker1", owned) > before:
        assert time.monotonic() < limit
        time.sleep(0.02)


def lost():
    assert rpc.rpc_sync("worker2", max, (1, 2)) == 2  # it has met all
    pending = rpc.rpc_async("worker1", pause, (100.0,), timeout=0)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=r"RPC to WorkerInfo\(id=1, name=worker1\) failed"):
        rpc.rpc_sync("worker1", end, timeout=0)
    with pytest.raises(RuntimeError, match="failed"):
        pending.wait()
    with pytest.raises(RuntimeError, match="failed"):
        rpc.rpc_sync("worker1", max, (1, 2))
    with pytest.raises(RuntimeError, match="ended without a shutdown"):
        rpc.shutdown()
    assert time.monotonic() - began < 30


def main():
    case, address, rank, size = *sys.argv[1:3], *map(int, sys.argv[3:])
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=2, init_method=f"tcp://{address}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    if rank == 0:
        globals()[case]()
    if case != "lost":
        rpc.shutdown()
    elif rank == 2:
        with pytest.raises(RuntimeError, match="ended without a shutdown"):
            rpc.shutdown()
    elif rank == 1:
        time.sleep(100)
    limit = time.monotonic() + 20
    while any(thread.name.startswith("rpc") for thread in threading.enumerate()):
        assert time.monotonic() < limit, threading.enumerate()
        time.sleep(0.01)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    sys.modules["tests.distributed.rpc.calls"] = sys.modules["__main__"]
    main()
