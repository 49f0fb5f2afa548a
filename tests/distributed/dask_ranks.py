"""Ranks that Dask's workers run: `dask_ranks.py PORT`. It prints the losses of each."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

from tests.distributed.by_hand import join, losses


def train(address, rank, size):
    """A rank's losses."""
    import torchlite.distributed as dist

    join("tcp", address, rank, size, timedelta(seconds=60))
    found = losses(rank, size, 5)
    dist.destroy_process_group()
    return found


def main():
    from distributed import Client, LocalCluster

    port = sys.argv[1]
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        started = [
            client.submit(train, f"127.0.0.1:{port}", rank, 2, workers=[worker], pure=False)
            for rank, worker in enumerate(workers)
        ]
        sys.stdout.write(f"losses {json.dumps(client.gather(started))}\n")


if __name__ == "__main__":
    main()
