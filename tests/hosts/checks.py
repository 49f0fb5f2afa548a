"""Checks of other folders on a rank of several machines: `checks.py ADDRESS RANK SIZE MODULE:CHECK...`."""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist


def main():
    address, rank, size, *names = sys.argv[1:]
    rank, size = int(rank), int(size)
    torch.set_num_threads(1)
    limit = timedelta(seconds=60)
    dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=size, timeout=limit)
    for name in names:
        module, _, check = name.partition(":")
        torch.manual_seed(0)
        getattr(importlib.import_module(module), check)(rank, size)
        sys.stdout.write(f"passed {name}\n")
        sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
