"""A worker of RPC on a machine of its own, until worker 1 is lost: `rpc_worker.py ADDRESS RANK SIZE`.

Calls without a limit of time are on the way between all when worker 1 is cut off or killed. It prints "waits", then
how many seconds it waited for their errors.
"""

from __future__ import annotations

import sys
import threading
import time

import torchlite as torch
import torchlite.distributed.rpc as rpc


def sleep(seconds):
    time.sleep(seconds)


def seconds_of(call):
    """How long a call takes that must fail as one to a worker that ended."""
    began = time.monotonic()
    try:
        call()
    except RuntimeError as error:
        if "failed" not in str(error):
            raise
        return time.monotonic() - began
    raise AssertionError("the call did not fail")


met = threading.Event()


def meet():
    met.set()


def call_until_it_fails():
    data = torch.ones(100_000)
    while True:
        rpc.rpc_sync("worker1", torch.neg, (data,), timeout=0)


def main():
    address, rank, size = sys.argv[1], *map(int, sys.argv[2:])
    options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=60, init_method=f"tcp://{address}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    lost = [0, 2] if rank == 1 else [1]
    pending = [rpc.rpc_async(other, sleep, (300,), timeout=0) for other in lost]
    sys.stdout.write("waits\n")
    sys.stdout.flush()
    found = [seconds_of(call_until_it_fails)] if rank == 2 else []  # its connection is never idle
    found += [seconds_of(one.wait) for one in pending]
    if rank != 1:
        other = 2 - rank
        # The others go on. Nobody waits for the reply: the other's shutdown may end it before.
        rpc.rpc_async(other, meet)
        assert met.wait(60)
    sys.stdout.write(f"waited {max(found):.1f}\n")
    found = seconds_of(rpc.shutdown)
    sys.stdout.write(f"shutdown {found:.1f}\n")


if __name__ == "__main__":
    sys.modules["tests.hosts.rpc_worker"] = sys.modules["__main__"]
    main()
