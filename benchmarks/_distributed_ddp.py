"""How much of the communication DistributedDataParallel hides behind backward.

mpiexec -n 2 python benchmarks/_distributed_ddp.py

A GPT's step is timed with its gradients reduced, with a hook that sends nothing, without DistributedDataParallel, and
the reductions alone, in turns, each to the end of the slower rank. Three measures:

- `hidden`: not hidden is the time for which the end of backward waits on the rank that waits least: the others wait for
  that rank, and not for messages.
- `hidden_by_time`: not hidden is what a step takes longer than one that sends nothing. Messages in the memory of one
  machine are the processors' work, so nothing can be hidden where every core has a rank.
- `hidden_from_network`: the same, but the messages are a clock's: each bucket takes what a ring over a network of
  `--gigabits` takes, and none of the processor. It says how much of the time between a bucket's start and its end
  backward had left to compute.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite import nn
from torchlite.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torchlite.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.forward_part = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any, mask: Any) -> Any:
        y = self.one(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.forward_part(self.two(x))


class GPT(nn.Module):
    def __init__(self, symbols: int, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.Linear(width, symbols)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, x: Any) -> Any:
        y = self.symbols(x) + self.places.weight
        for block in self.blocks:
            y = block(y, self.mask)
        return self.last(y)


class Network:
    """A link that carries one bucket after the other, without a processor's work."""

    def __init__(self, gigabits: float, microseconds: float, ranks: int) -> None:
        self.second, self.latency, self.ranks = gigabits * 1e9 / 8, microseconds * 1e-6, ranks
        self.free = 0.0  # when it has carried all that it was given
        self.busy = 0.0  # seconds in all

    def hook(self, state, bucket):  # DistributedDataParallel looks at annotations
        """As hooks of DistributedDataParallel: a future of the bucket, which comes when its time is over."""
        data = bucket.buffer()
        steps = 2 * (self.ranks - 1)
        takes = steps * (self.latency + data.nbytes / self.ranks / self.second)
        self.busy += takes
        self.free = max(self.free, time.perf_counter()) + takes
        until = self.free

        class Carried(torch.futures.Future):
            def wait(self) -> Any:
                while (left := until - time.perf_counter()) > 0:
                    time.sleep(left)
                return data

        return Carried()


def timed(run: Any) -> float:
    dist.barrier()
    start = time.perf_counter()
    run()
    dist.barrier()
    return time.perf_counter() - start


def measure(width: int, layers: int, batch: int, rounds: int, cap: float | None, gigabits: float) -> dict[str, float]:
    """Seconds of the parts, medians over rounds on this rank."""
    torch.set_num_threads(1)
    model = GPT(256, width, 4, layers, 64)
    options: Any = {"bucket_cap_mb": cap, "gradient_as_bucket_view": True, "forward_sync_buffers": False}
    ddp = DistributedDataParallel(model, **options)
    silent = DistributedDataParallel(copy.deepcopy(model), **options)
    silent.register_comm_hook(None, noop_hook)
    network = Network(gigabits, 20, dist.get_world_size())
    remote = DistributedDataParallel(copy.deepcopy(model), **options)
    remote.register_comm_hook(None, network.hook)
    single = copy.deepcopy(model)
    x = torch.randint(256, (batch, 64))

    def step(net: nn.Module) -> None:
        net.zero_grad()
        loss = nn.functional.cross_entropy(net(x).flatten(0, 1), x.flatten())
        loss.backward()

    def reductions() -> None:
        for bucket in ddp.reducer.buckets:
            dist.all_reduce(bucket.buffer)

    runs = {
        "step": lambda: step(ddp), "silent": lambda: step(silent), "network": lambda: step(remote),
        "single": lambda: step(single), "reductions": reductions,
    }  # fmt: skip
    for _ in range(2):
        for run in runs.values():
            run()
    waits: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(timed(run))
            if name == "step":
                waits.append(ddp.reducer.waited)
    found = {name: statistics.median(values) for name, values in times.items()}
    told: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, waits)
    found["waited"] = statistics.median(min(step) for step in zip(*told, strict=True))
    found["hidden"] = 1 - found["waited"] / found["reductions"]
    found["hidden_by_time"] = 1 - (found["step"] - found["silent"]) / found["reductions"]
    found["carried"] = network.busy / (rounds + 2)
    found["hidden_from_network"] = 1 - (found["network"] - found["silent"]) / found["carried"]
    found["MiB"] = sum(p.nbytes for p in model.parameters()) / 2**20
    found["buckets"] = len(ddp.reducer.buckets)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bucket-cap-mb", type=float, default=1.0)
    parser.add_argument("--gigabits", type=float, default=10.0)
    options = parser.parse_args()
    dist.init_process_group("mpi")
    found = measure(
        options.width, options.layers, options.batch, options.rounds, options.bucket_cap_mb, options.gigabits
    )
    if dist.get_rank() == 0:
        print(json.dumps({name: round(value, 5) for name, value in found.items()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
