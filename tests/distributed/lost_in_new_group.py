"""A rank that is killed while others make a group with it: `lost_in_new_group.py ADDRESS RANK SIZE LOST SECONDS`."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torchlite.distributed as dist


def main():
    address, rank, size, lost, seconds = sys.argv[1:]
    rank = int(rank)
    dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=int(size), timeout=timedelta(seconds=60))
    dist.barrier()
    from torchlite_backends.mpi import group_meeting  # it begins MPI

    if rank == int(lost):
        meet = group_meeting.wait_for_members

        def meet_and_end(*args):
            meet(*args)
            os.kill(os.getpid(), signal.SIGKILL)

        group_meeting.wait_for_members = meet_and_end
    begin = time.monotonic()
    try:
        dist.new_group(timeout=timedelta(seconds=float(seconds)))
    finally:
        sys.stdout.write(f"after {time.monotonic() - begin:.1f} seconds\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
