"""Two ranks that end without notifying the launcher, and standard streams of ranks: `ending.py HOW`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

from tests.distributed.killed_program import parent


def joining():
    import torchlite.distributed as dist

    dist.init_process_group("gloo")


def main():
    how, rank = sys.argv[1], int(os.environ["RANK"])
    if how.startswith("kill"):
        proxy = parent(os.getppid())
        if how == "kill proxy within a group":
            joining()
        time.sleep(1.5)  # until the launcher knows the processes
        if rank == 1:
            os.kill(parent(proxy) if how == "kill mpiexec" else proxy, signal.SIGKILL)
        if how == "kill proxy while one joins" and rank == 0:
            joining()
        time.sleep(90)
    if how.startswith("abort") or how == "os._exit":
        from mpi4py import MPI

        everyone = MPI.COMM_WORLD
        everyone.Barrier()
        if rank == 1:
            os._exit(0) if how == "os._exit" else everyone.Abort(int(how.split()[1]))
        everyone.Barrier()
    if how == "input":
        sys.stdout.write(f"rank {rank} read {sys.stdin.read()!r}\n")
    if how == "remove":
        shutil.rmtree(os.environ["TORCHLITE_RANK_FOLDER"])
    if how == "progress" and rank == 0:
        sys.stderr.write("\rä \x1etorchlite-run 50%")
        sys.stderr.flush()
        sys.stdin.readline()  # which the test sends when it has seen this
        sys.stderr.write(" done")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
