"""A program in which rank 1 does not come to `init_process_group`: `missing_rank.py HOW SECONDS`."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def absent(how):
    if how == "sys.exit":
        sys.exit(0)
    if how == "os._exit":
        os._exit(0)
    if how in ("hang", "caught"):
        time.sleep(80 if how == "hang" else 14)
        sys.exit(0)
    if how == "late":
        time.sleep(10)


def join(how, seconds):
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))
    except dist.DistStoreError as error:
        if how not in ("caught", "late"):
            raise
        sys.stdout.write(f"caught {error}\n")
        sys.stdout.flush()
        if how == "caught":
            sys.exit(0)
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))


def main():
    how, seconds = sys.argv[1], float(sys.argv[2])
    rank = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
    if rank == 1:
        absent(how)
    if how == "nobody":
        time.sleep(0 if rank == 1 else 6)
    else:
        join(how, seconds)
        x = torch.ones(1)
        dist.all_reduce(x)
        sys.stdout.write(f"sum {x.item()}\n")


if __name__ == "__main__":
    main()
