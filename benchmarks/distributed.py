"""Time of collectives by size, beside plain mpi4py in the same processes: `python benchmarks/distributed.py`.

Each row is measured in turns (one of ours, one of mpi4py's, and the other way round) between barriers; shown are the
slowest rank's medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

SIZES = (1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22)


def contestants(nbytes):
    """By name a pair of functions: torchlite's and mpi4py's, on the same memory."""
    from mpi4py import MPI

    import torchlite as torch
    import torchlite.distributed as dist

    world, rank, size = MPI.COMM_WORLD, dist.get_rank(), dist.get_world_size()
    count = max(nbytes // 4 // size, 1) * size
    x, y = torch.ones(count), torch.ones(count // size)
    a, b = x.numpy(), y.numpy()
    other = rank ^ 1

    def ours_there_and_back():
        if other < size:
            (dist.send if rank < other else dist.recv)(x, other)
            (dist.recv if rank < other else dist.send)(x, other)

    def theirs_there_and_back():
        if other < size:
            (world.Send if rank < other else world.Recv)(a, other)
            (world.Recv if rank < other else world.Send)(a, other)

    return {
        "all_reduce": (lambda: dist.all_reduce(x), lambda: world.Allreduce(MPI.IN_PLACE, a)),
        "broadcast": (lambda: dist.broadcast(x, 0), lambda: world.Bcast(a, 0)),
        "all_gather": (lambda: dist.all_gather_into_tensor(x, y), lambda: world.Allgather(b, a)),
        "reduce_scatter": (lambda: dist.reduce_scatter_tensor(y, x), lambda: world.Reduce_scatter_block(a, b)),
        "send and recv": (ours_there_and_back, theirs_there_and_back),
    }


def measure(sizes, rounds):
    """A rank's part: rank 0 prints a row of JSON for each collective and size."""
    import torchlite.distributed as dist

    dist.init_process_group("gloo")  # first: it says how MPI begins
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for nbytes in sizes:
        repeats = max(6, min(50, (1 << 20) // nbytes))
        for name, pair in contestants(nbytes).items():
            times = ([], [])
            for turn in range(rounds):
                ours_first = list(zip(pair, times, strict=True))
                for function, found in ours_first if turn % 2 else reversed(ours_first):
                    function()
                    world.Barrier()
                    start = time.perf_counter()
                    for _ in range(repeats):
                        function()
                    found.append((time.perf_counter() - start) / repeats)
            slowest = [max(world.allgather(statistics.median(found))) for found in times]
            if dist.get_rank() == 0:
                print(json.dumps([name, nbytes, *slowest]), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.sizes, args.rounds)
        return
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    mpiexec = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    for ranks in args.ranks:
        print(
            f"{ranks} ranks\n| collective | bytes | torchlite | mpi4py | ratio |\n| --- | ---: | ---: | ---: | ---: |"
        )
        command = [mpiexec, "-n", str(ranks), sys.executable, __file__, "--measure", "--rounds", str(args.rounds)]
        ended = subprocess.run([*command, "--sizes", *map(str, args.sizes)], capture_output=True, text=True, check=True)
        for line in ended.stdout.splitlines():
            name, nbytes, ours, theirs = json.loads(line)
            print(f"| {name} | {nbytes:,} | {ours * 1e6:.0f} µs | {theirs * 1e6:.0f} µs | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
