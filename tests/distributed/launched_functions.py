"""Functions and commands that `test_launcher.py` launches."""

from __future__ import annotations

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import torchlite as torch
import torchlite.distributed as dist


def reduced(start):
    """The sum over the ranks, and the rank's own number."""
    dist.init_process_group("gloo")
    word = torch.full((2,), float(start + dist.get_rank()))
    dist.all_reduce(word)
    found = word.tolist(), dist.get_rank(), os.environ["LOCAL_RANK"]
    dist.destroy_process_group()
    return found


def fails_on_rank_1(seconds):
    """Rank 1 fails; rank 0 does not end by itself."""
    if os.environ["RANK"] == "1":
        raise ValueError("rank 1 cannot")
    time.sleep(seconds)


def fails_at_first(folder):
    """The first attempt fails; how often it was restarted."""
    Path(folder, os.environ["RANK"] + "-" + os.environ["TORCHELASTIC_RESTART_COUNT"]).touch()
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(3)
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def overstays_at_first():
    """Sleep in a block with a timer, at the first attempt too long; how often it was restarted."""
    from torchlite.distributed.elastic import timer

    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
    with timer.expires(60 if restarts else 0.1):
        time.sleep(0 if restarts else 120)
    return restarts


def kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def says():
    sys.stdout.write("to the output\nsecond line\n")
    sys.stdout.flush()
    sys.stderr.write("to the errors\n")


def returns_what_cannot_be_pickled():
    return lambda: 0


def waits():
    sys.stdout.write("started\n")
    sys.stdout.flush()
    time.sleep(60)


def waits_for_a_world_of_two(folder):
    """The rank and the size, once there are two; rank 1 fails at the first time."""
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    if size == "1":
        Path(folder, "alone").touch()
        time.sleep(60)
    failed, again = Path(folder, "failed"), Path(folder, "again")
    if rank == "1":
        if not failed.exists():
            failed.touch()
            sys.exit(3)
        again.touch()
    while not again.exists():
        time.sleep(0.05)
    return f"{rank} of {size}"


def health(port):
    """The status that a health check at this port gets."""
    try:
        with urllib.request.urlopen(f"http://localhost:{port}", timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def notes_and_waits(folder):
    """Write a file with the number of the attempt, and sleep."""
    Path(folder, os.environ["TORCHELASTIC_RESTART_COUNT"]).touch()
    time.sleep(120)
