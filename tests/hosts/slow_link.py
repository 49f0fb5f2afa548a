"""Time to a loss of DistributedDataParallel over a slow or late link, by what is sent.

    python -m tests.hosts.slow_link

Two ranks on two namespaces train the GPT of benchmarks/_distributed_ddp.py on bytes of this project's documentation.
A link of `--rate` is the kernel's (tc tbf). Late and lost packets are those of late_link.py. The first round of runs
trains to the loss. Short ones follow in turns while `--minutes` last, for times only. The time of a step is the median
of a run, and the least of all runs. That to the loss is this time for each step that it took.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import time
from datetime import timedelta
from typing import Any

from tests.distributed.rank_launcher import ROOT
from tests.hosts.machines import Machines

PORT, LENGTH, MICROBATCHES = 29500, 64, 4
SHORT = 24  # steps of a run for times only
NOTHING = "nothing sent"  # a way whose ranks train apart, so it has times only
# The hook of each way; the rank of PowerSGD.
WAYS: dict[str, tuple[str, int]] = {
    "default": ("", 0),
    "fp16": ("fp16_compress_hook", 0),
    "bf16": ("bf16_compress_hook", 0),
    "PowerSGD, rank 1": ("powerSGD_hook", 1),
    "PowerSGD, rank 2": ("powerSGD_hook", 2),
    "PowerSGD, batched": ("batched_powerSGD_hook", 1),
    "no_sync": ("", 0),
    NOTHING: ("noop_hook", 0),
}


def sent() -> int:
    """The bytes that this machine's device has sent, with headers."""
    with open("/proc/net/dev") as file:
        (line,) = (line for line in file if line.strip().startswith("eth0:"))
    return int(line.split(":")[1].split()[8])


def compress(model: Any, way: str) -> None:
    from torchlite.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks, powerSGD_hook

    name, rank = WAYS[way]
    if rank:
        state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=10, batch_tensors_with_same_shape=True)
        model.register_comm_hook(state, getattr(powerSGD_hook, name))
    elif name:
        model.register_comm_hook(None, getattr(debugging_hooks if name == "noop_hook" else default_hooks, name))


def train(way: str, rank: int, steps: int, width: int) -> dict[str, Any]:
    """Times and losses of optimizer steps; the seconds and bytes of a step."""
    import torchlite as torch
    import torchlite.distributed as dist
    from benchmarks._distributed_ddp import GPT

    torch.manual_seed(0)
    network = GPT(256, width, 4, 4, LENGTH)
    model = torch.nn.parallel.DistributedDataParallel(
        network, bucket_cap_mb=1.0, gradient_as_bucket_view=True, forward_sync_buffers=False
    )
    compress(model, way)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    text = torch.frombuffer(bytearray((ROOT / "docs" / "distributed.md").read_bytes()), dtype=torch.uint8).long()
    draws = torch.Generator().manual_seed(rank)
    parts = MICROBATCHES if way == "no_sync" else 1

    def loss() -> Any:
        starts = torch.randint(len(text) - LENGTH - 1, (8,), generator=draws)
        rows = torch.stack([text[start : start + LENGTH + 1] for start in starts.tolist()])
        return torch.nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    times, losses, bytes_before = [], [], 0
    dist.barrier()
    begin = time.perf_counter()
    for step in range(steps):
        if step == steps // 2:
            bytes_before = sent()
        optimizer.zero_grad()
        total = 0.0
        for part in range(parts):
            with model.no_sync() if part < parts - 1 else contextlib.nullcontext():
                value = loss() / parts
                value.backward()
            total += value.item()
        optimizer.step()
        losses.append(total)
        times.append(time.perf_counter() - begin)
    bytes_sent = (sent() - bytes_before) / (steps - steps // 2)
    mean = torch.tensor(losses)
    dist.all_reduce(mean)
    later = times[steps // 4 :]
    return {
        "losses": (mean / dist.get_world_size()).tolist(),
        "times": times,
        "step": statistics.median(after - before for before, after in itertools.pairwise(later)),
        "sent": bytes_sent,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "buckets": len(model.reducer.buckets),
    }


def round_trip(rank: int) -> float:
    """Seconds of the fastest of ten messages there and back."""
    import torchlite as torch
    import torchlite.distributed as dist

    word, found = torch.zeros(1), []
    for _ in range(10):
        begin = time.perf_counter()
        for sender in range(2):
            (dist.send if rank == sender else dist.recv)(word, 1 - rank)
        found.append(time.perf_counter() - begin)
    return min(found)


def rank_program(way: str, rank: int, address: str, steps: int, width: int) -> None:
    import torchlite as torch
    import torchlite.distributed as dist

    torch.set_num_threads(1)
    limit = timedelta(seconds=120)
    dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=2, timeout=limit)
    there_and_back = round_trip(rank)
    found = train(way, rank, steps, width)
    if rank == 0:
        sys.stdout.write(f"found {json.dumps({**found, 'round trip': there_and_back})}\n")
    dist.destroy_process_group()


def measure(way: str, rate: str, late: float, lost: float, steps: int, width: int) -> dict[str, Any]:
    """Result of a run on rank 0."""
    with Machines(2, late, lost) as machines:
        if rate:
            machines.limit(rate)
        started = []
        for rank in range(2):
            words = ["--run", way, str(rank), f"{machines.address(0)}:{PORT}", "--steps", str(steps)]
            program = [sys.executable, "-m", "tests.hosts.slow_link", *words, "--width", str(width)]
            started.append(machines.start(rank, *program))
        outputs = [process.communicate(timeout=600)[0] for process in started]
    lines = [line for line in outputs[0].splitlines() if line.startswith("found ")]
    if not lines:
        raise RuntimeError("\n".join(outputs))
    return json.loads(lines[0].removeprefix("found "))


def steps_to(losses: list[float], goal: float) -> int | None:
    """After how many steps the mean loss of ten steps first was at most `goal`."""
    return next((n for n in range(10, len(losses) + 1) if statistics.mean(losses[n - 10 : n]) <= goal), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs=3, metavar=("WAY", "RANK", "ADDRESS"), help="be a rank")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--rate", default="1gbit", help='of each link, as tc says it; "" for none')
    parser.add_argument("--late", type=float, default=0, help="milliseconds, one way")
    parser.add_argument("--lost", type=float, default=0, help="percent of the packets")
    parser.add_argument("--steps", type=int, default=400, help="of the first round; no_sync takes a quarter")
    parser.add_argument("--minutes", type=float, default=9.5, help="for rounds after the first, which always ends")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--goal", type=float, default=2.5, help="the loss, a mean of ten steps")
    options = parser.parse_args()
    if options.run:
        way, rank, address = options.run
        rank_program(way, int(rank), address, options.steps, options.width)
        return
    began, first, times, shorter = time.monotonic(), dict[str, Any](), dict[str, float](), 0.0
    while not first or time.monotonic() - began + shorter < 60 * options.minutes:
        start, steps = time.monotonic(), SHORT if first else options.steps
        for way in options.ways:
            number = steps // MICROBATCHES if way == "no_sync" else SHORT if way == NOTHING else steps
            found = measure(way, options.rate, options.late, options.lost, number, options.width)
            first.setdefault(way, found)
            times[way] = min(times.get(way, found["step"]), found["step"])
            sys.stderr.write(
                f"{way}: a step {1e3 * found['step']:.0f} ms, {found['parameters']} parameters, {found['buckets']} "
                f"buckets, a message there and back {1e3 * found['round trip']:.2f} ms\n"
            )
        took = time.monotonic() - start
        shorter = took * SHORT / steps + 4 * len(options.ways) if steps > SHORT else took  # each run starts two ranks
    sys.stdout.write("| | a step | sent a step | steps to the loss | time to it | last loss |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: | ---: | ---: |\n")
    for way, found in first.items():
        needed = steps_to(found["losses"], options.goal)
        reached = f"{needed or 'not reached'} | {f'{needed * times[way]:.0f} s' if needed else ''} | "
        reached += f"{statistics.mean(found['losses'][-10:]):.2f}"
        sent_a_step = f"{1e3 * times[way]:.0f} ms | {found['sent'] / 2**20:.2f} MiB"
        sys.stdout.write(f"| {way} | {sent_a_step} | {' | | ' if way == NOTHING else reached} |\n")


if __name__ == "__main__":
    main()
