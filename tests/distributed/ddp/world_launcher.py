"""Worlds of a few processes for tests: many checks a start."""

from __future__ import annotations

import traceback

import torchlite as torch
import torchlite.distributed as dist
from torchlite import multiprocessing as mp

SECONDS = 240


def _work(rank, size, meeting, checks, answers):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=size)
    failed = []
    for check in checks:
        torch.manual_seed(0)
        try:
            check(rank, size)
        except BaseException:
            failed.append(f"{check.__name__}, rank {rank}:\n{traceback.format_exc()}")
            break  # the others may wait for this one: nothing after it means anything
    answers.put(failed)
    if failed:
        raise RuntimeError(failed[0])
    dist.destroy_process_group()


def run(tmp_path, size, *checks):
    """Call each check with (rank, size) in `size` processes of one world; the first error of any is raised here."""
    answers = mp.get_context("spawn").SimpleQueue()
    started = mp.start_processes(
        _work, (size, str(tmp_path / "world"), checks, answers), nprocs=size, join=False, start_method="spawn"
    )
    while not started.join(timeout=SECONDS):
        if not any(not process.is_alive() for process in started.processes):
            for process in started.processes:
                process.kill()
            raise TimeoutError(f"{size} processes took more than {SECONDS} seconds")
