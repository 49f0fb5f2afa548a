"""A program in which rank 1 leaves early: `early_exit.py HOW WHERE`."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def main():
    how, where = sys.argv[1:]
    dist.init_process_group("gloo", timeout=timedelta(seconds=3 if how == "sys.exit" else 40))
    x = torch.ones(3)
    dist.all_reduce(x)
    if where == "destroyed":
        dist.destroy_process_group()
    if dist.get_rank() == 1 if dist.is_initialized() else os.environ["RANK"] == "1":
        if how == "os._exit":
            os._exit(0)
        if how == "status":
            os._exit(7)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how in ("sys.exit", "ends"):
            sys.exit(0)
    if where == "collective":
        dist.all_reduce(x)
    if where == "barrier":
        dist.barrier()
    if where == "store":
        store = dist.distributed_c10d._get_default_store()
        if how == "ends":
            store.set_timeout(timedelta(seconds=12))
        store.get("never")
    if where == "secret":
        sys.stdout.write(f"secret {len(os.environ['TORCHLITE_STORE_SECRET'])}\n")  # one write: lines of ranks may mix


if __name__ == "__main__":
    main()
