"""What DistributedDataParallel's efficiency would be at 8 to 1,024 hosts: a model, fed with what one machine measures.

    python benchmarks/distributed_model.py                       # measures (2 ranks, two minutes), then predicts
    python benchmarks/distributed_model.py --measured FILE       # predicts from an earlier measurement
    python benchmarks/distributed_model.py --picture docs/distributed_model.svg

Measured: a step of the GPT of _distributed_ddp.py on one rank, its gradients' bytes and buckets, and the time of
all_reduce by size between two ranks in one machine's memory, to which `call + byte * size` is fitted: what a call costs
in Python, and what copying and adding costs the processor, which no network takes away.

Predicted: one rank a host, the same batch on each (weak scaling). Each bucket is reduced by the quicker of a ring and
recursive halving and doubling (Thakur, Rabenseifner, Gropp: "Optimization of Collective Communication Operations in
MPICH", 2005, section 4.5), whose messages cost `latency + size / bandwidth`. What the network carries is hidden behind
the part of backward that is left when a bucket is whole; buckets become whole at even times. Hosts are alike and never
late, links are not shared: the figures are what the network allows, and no machine of this size was tried.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SHOWN = (8, 64, 256, 1024)
# By name: bytes a second of a link, and seconds until a message is there. Bandwidths are those of the standards and
# data sheets; latencies of TCP are an assumption, as no data sheet has them.
NETWORKS = {
    "1 Gb/s Ethernet, TCP": (0.125e9, 40e-6),  # IEEE 802.3ab
    "10 Gb/s Ethernet, TCP": (1.25e9, 25e-6),  # IEEE 802.3an
    "100 Gb/s Ethernet, TCP": (12.5e9, 15e-6),  # IEEE 802.3ba
    "InfiniBand HDR, 200 Gb/s": (25e9, 0.6e-6),  # NVIDIA's product brief of ConnectX-6: 200 Gb/s, under 0.6 µs
}
BACKWARD = 2 / 3  # of a step's arithmetic: two products for each of the forward's


def run(command: list[str]) -> list[str]:
    """What a program prints, by lines."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def measured() -> dict[str, float]:
    """What this machine says, of two ranks."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    mpiexec = beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    assert mpiexec is not None
    start = [mpiexec, "-n", "2", sys.executable]
    sizes = [1 << n for n in range(10, 23, 2)]
    lines = run([*start, str(HERE / "distributed.py"), "--measure", "--rounds", "9", "--sizes", *map(str, sizes)])
    times = {row[1]: row[2] for row in map(json.loads, lines) if row[0] == "all_reduce"}
    call, byte = fitted(times)
    ddp = json.loads(run([*start, str(HERE / "_distributed_ddp.py"), "--rounds", "9"])[-1])
    return {
        "call": call, "byte": byte, "step": ddp["single"], "bytes": ddp["MiB"] * 2**20, "buckets": ddp["buckets"],
    }  # fmt: skip


def fitted(times: dict[int, float]) -> tuple[float, float]:
    """`call` and `byte` of `call + byte * size` for which the relative errors' squares are least."""
    rows = [(1 / t, size / t) for size, t in times.items()]
    aa, ab, bb = (sum(x[i] * x[j] for x in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = sum(x[0] for x in rows), sum(x[1] for x in rows)
    determinant = aa * bb - ab * ab
    return max(0.0, (a * bb - b * ab) / determinant), max(0.0, (b * aa - a * ab) / determinant)


def carried(size: float, ranks: int, bandwidth: float, latency: float) -> float:
    """Seconds for which the network has a bucket."""
    share = 2 * size * (ranks - 1) / ranks / bandwidth
    ring = 2 * (ranks - 1) * latency + share
    halving = 2 * math.ceil(math.log2(ranks)) * latency + share
    return min(ring, halving)


def step_time(facts: dict[str, float], ranks: int, bandwidth: float, latency: float) -> float:
    """Seconds of a step: arithmetic, the processor's part of the messages, and what is not hidden of the network's."""
    buckets = int(facts["buckets"])
    size = facts["bytes"] / buckets
    own = buckets * facts["call"] + facts["bytes"] * facts["byte"]
    backward = facts["step"] * BACKWARD
    free = 0.0  # when the link has carried all buckets so far, counted from the start of backward
    for bucket in range(1, buckets + 1):
        free = max(free, backward * bucket / buckets) + carried(size, ranks, bandwidth, latency)
    return facts["step"] + own + free - backward


def table(facts: dict[str, float]) -> str:
    """Efficiency by network and number of hosts, as Markdown."""
    head = "| network | " + " | ".join(f"{ranks:,}" for ranks in SHOWN) + " |"
    lines = [head, "| --- |" + " ---: |" * len(SHOWN)]
    for name, network in NETWORKS.items():
        shares = [facts["step"] / step_time(facts, ranks, *network) for ranks in SHOWN]
        lines.append(f"| {name} | " + " | ".join(f"{100 * share:.0f}%" for share in shares) + " |")
    return "\n".join(lines)


def picture(facts: dict[str, float]) -> str:
    """Efficiency by number of hosts, a line for each network, as SVG."""
    left, top, width, height = 60, 20, 480, 240
    x = lambda ranks: left + width * math.log2(ranks / RANKS[0]) / math.log2(RANKS[-1] / RANKS[0])
    y = lambda share: top + height * (1 - share)
    colours = ("#b22222", "#d2791e", "#2e8b57", "#1f5fa8")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 200} {top + height + 50}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<text x="{left - 8}" y="{y(share) + 4:.0f}" text-anchor="end">{100 * share:.0f}%</text>')
        parts.append(f'<path d="M{left} {y(share):.0f}h{width}" stroke="#ddd"/>')
    for ranks in RANKS:
        parts.append(f'<text x="{x(ranks):.0f}" y="{top + height + 18}" text-anchor="middle">{ranks}</text>')
    parts.append(f'<text x="{left + width / 2:.0f}" y="{top + height + 40}" text-anchor="middle">hosts</text>')
    for network, colour in zip(NETWORKS.values(), colours, strict=True):
        points = [(x(r), y(facts["step"] / step_time(facts, r, *network))) for r in RANKS]
        parts.append(
            '<polyline fill="none" stroke-width="2" stroke="{}" points="{}"/>'.format(
                colour, " ".join(f"{a:.0f},{b:.0f}" for a, b in points)
            )
        )
    for place, (name, colour) in enumerate(zip(NETWORKS, colours, strict=True)):
        parts.append(f'<text x="{left + width + 10}" y="{top + 20 + 18 * place}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, help="a file of an earlier measurement; made where it is not there")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.measured is not None and options.measured.exists():
        facts = json.loads(options.measured.read_text())
    else:
        facts = measured()
        if options.measured is not None:
            options.measured.write_text(json.dumps(facts))
    print(f"step {1e3 * facts['step']:.1f} ms, {facts['bytes'] / 2**20:.1f} MiB in {facts['buckets']} buckets; a call "
          f"costs {1e6 * facts['call']:.1f} µs and {1e12 * facts['byte']:.0f} ps a byte\n")  # fmt: skip
    print(table(facts))
    if options.picture is not None:
        options.picture.write_text(picture(facts))


if __name__ == "__main__":
    main()
