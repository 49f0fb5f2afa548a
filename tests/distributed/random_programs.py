"""Random programs of collectives and messages in random groups, without an answer that comes late:
`python -m tests.distributed.random_programs --seeds 0:200` as a rank.
"""

from __future__ import annotations

import argparse
import random
import time
from datetime import timedelta

import torchlite as torch
import torchlite.distributed as dist
from tests.distributed.checked_collectives import DTYPES, KINDS, MOVED, REDUCING, Step, begin, ops_of
from torchlite.distributed import ReduceOp


def program(seed, groups, length):
    """The steps of a program, the same on all ranks."""
    draw = random.Random(seed)
    for i in range(length):
        group, members = draw.choice(groups)
        kind = draw.choice(KINDS)
        dtype = draw.choice(DTYPES if kind in REDUCING else [*DTYPES, *MOVED])
        shape = tuple(draw.choice([0, 1, 2, 3, 17, 64]) for _ in range(draw.randrange(3)))
        if draw.random() < 0.05:
            dtype, shape = torch.float32, (draw.randrange(60_000),)
        op = draw.choice(ops_of(dtype)) if kind in REDUCING else ReduceOp.SUM
        yield Step(kind, group, members, dtype, shape, op, draw.randrange(len(members)), (seed, i), draw.random() < 0.3)


def run(seed, groups, length=25):
    """A rank waits for its own works when it likes, and is late now and then."""
    rank = dist.get_rank()
    own = random.Random(seed * 1000 + rank)
    pending = []
    for step in program(seed, groups, length):
        if rank not in step.members:
            continue
        end = begin(step, async_op=own.random() < 0.5)
        pending.append(end) if own.random() < 0.4 else end()
        while pending and own.random() < 0.3:
            pending.pop(own.randrange(len(pending)))()
        if own.random() < 0.02:
            time.sleep(0.002)
    own.shuffle(pending)
    for end in pending:
        end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0:50")
    first, last = map(int, parser.parse_args().seeds.split(":"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [(dist.group.WORLD, list(range(size)))]
    for members in ([0], [size - 1, 0], list(range(size - 1)), list(range(size))[::-1]):
        if len(set(members)) == len(members) > 0:
            groups.append((dist.new_group(members, sort_ranks=False), members))
    for seed in range(first, last):
        try:
            run(seed, groups)
        except BaseException:
            print(f"rank {rank}: seed {seed}", flush=True)
            raise
    dist.destroy_process_group()
    print(f"rank {rank} ran the seeds {first} to {last - 1}")


if __name__ == "__main__":
    main()
