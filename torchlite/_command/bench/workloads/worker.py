"""The process that runs workloads under one module."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

from .context import Context, Rows

# The workloads of each file, by the names of the functions that make their rows; and the groups to choose by.
FILES = {
    "small": ("small", "mlp", "lenet", "clip", "sparse"),
    "language": ("gpt", "bert", "encoder", "lstm", "recommender"),
    "vision": ("resnet18", "resnet50", "mobilenet", "unet", "wavenet", "vit"),
    "large": ("large",),
}
WORKLOADS = {name: file for file, names in FILES.items() for name in names}
GROUPS = {
    "small": ("small",),
    "mlp": ("mlp", "lenet", "clip"),
    "networks": (*FILES["language"], *FILES["vision"]),
    "big": ("large", "sparse"),
}


def rows_of(name: str, context: Context) -> Rows:
    """The rows of a workload."""
    make: Callable[[Context], Rows] = getattr(importlib.import_module("." + WORKLOADS[name], __package__), name)
    context.T.manual_seed(0)
    return make(context)


def chosen(words: str) -> list[str]:
    """The workloads that groups and names stand for."""
    found: list[str] = []
    for word in filter(None, words.split(",")) if words else GROUPS:
        if word not in GROUPS and word not in WORKLOADS:
            raise SystemExit(f"no workload or group {word!r}: {', '.join([*GROUPS, *WORKLOADS])}")
        found += [w for w in GROUPS.get(word, (word,)) if w not in found]
    return found


def peak_memory() -> float:
    """MiB that the process has had at once; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> int:
    from .measure import measure

    parser = argparse.ArgumentParser(description="Times workloads under a module with PyTorch's API.")
    parser.add_argument("module")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    names = chosen(options.only)
    start = time.perf_counter()
    T: Any = importlib.import_module(options.module)
    print(f"import {(time.perf_counter() - start) * 1e3:.4g} ms", flush=True)
    T.set_num_threads(options.threads)
    context = Context(T, options.device, options.scale)
    for name in names:
        for row, call in rows_of(name, context):
            took = measure(call, context.wait, options.seconds)
            print(f"{row} {took['wall'] * 1e3:.5g} ms", flush=True)
    print(f"peak_memory {peak_memory():.4g} MiB", flush=True)
    return 0
