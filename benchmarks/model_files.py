"""How fast models out of files load and run, beside the module that they were made from.

usage: python benchmarks/model_files.py [--only gpt,vit] [--against torch] [--formats pt2,torchscript,scripted,onnx]
       [--seconds 0.2] [--large]

For each network of `tests/graph_models`, in eval mode without gradients: the time of the eager module, and of each
file's module as a share of it, measured in turn in this process, the least of many. `--against torch` adds what that
module takes to load the same .pt2 and TorchScript files (torchlite's load as a share of its). `--large` writes and
loads a ResNet-50 of 100 MB instead, in each format.
"""

from __future__ import annotations

import argparse
import importlib
import io
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends")]

import torchlite as torch  # noqa: E402
from tests.graph_models import MODELS  # noqa: E402

nn = torch.nn


def pt2(module: Any, inputs: tuple) -> bytes:
    """The module as .pt2."""
    held = io.BytesIO()
    torch.export.save(torch.export.export(module, inputs), held)
    return held.getvalue()


def torchscript(module: Any, inputs: tuple) -> bytes:
    """The module as traced TorchScript."""
    held = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, inputs, check_trace=False), held)
    return held.getvalue()


def scripted(module: Any, inputs: tuple) -> bytes:
    """The module as scripted TorchScript."""
    held = io.BytesIO()
    torch.jit.save(torch.jit.script(module), held)
    return held.getvalue()


def onnx(module: Any, inputs: tuple) -> bytes:
    """The module as ONNX."""
    return torch.onnx.export(module, inputs).to_bytes()


WRITERS: dict[str, Callable[[Any, tuple], bytes]] = {
    "pt2": pt2,
    "torchscript": torchscript,
    "scripted": scripted,
    "onnx": onnx,
}


def loaded(library: Any, name: str, data: bytes) -> Any:
    """What a file holds, loaded by `library`."""
    held = io.BytesIO(data)
    if name == "pt2":
        return library.export.load(held)
    return library.onnx.load(held) if name == "onnx" else library.jit.load(held)


def least(runs: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The least time of each, run in turn until each has had so many seconds."""
    for run in runs:
        run(), run()
    found = [[] for _ in runs]
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end or len(found[0]) < 5:
        for times, run in zip(found, runs, strict=True):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return [min(times) for times in found]


def once(run: Callable[[], Any], times: int = 3) -> float:
    """The least time of a few."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        norm = nn.BatchNorm2d
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), norm(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), norm(inner), nn.ReLU(),
            nn.Conv2d(inner, inner * 4, 1, bias=False), norm(inner * 4),
        )  # fmt: skip
        plain = stride == 1 and width == inner * 4
        self.skip = (
            nn.Identity()
            if plain
            else nn.Sequential(nn.Conv2d(width, inner * 4, 1, stride, bias=False), norm(inner * 4))
        )

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x) + self.skip(x))


def resnet50() -> Any:
    """ResNet-50: 25.6 million parameters."""
    blocks, width = [], 64
    for inner, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            blocks.append(Bottleneck(width, inner, 2 if number == 0 and inner > 64 else 1))
            width = inner * 4
    head = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*head, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)).eval()


def large(formats: list[str], other: Any) -> None:
    """Load times of ResNet-50."""
    module, inputs = resnet50(), (torch.ones(1, 3, 64, 64),)
    print(f"{'ResNet-50':14}{'MB':>8}{'load ms':>10}{'share of other':>16}")
    for name in formats:
        data = WRITERS[name](module, inputs)
        mine = once(lambda name=name, data=data: loaded(torch, name, data))
        shown = ""
        if other is not None and name != "onnx":
            shown = f"{mine / once(lambda name=name, data=data: loaded(other, name, data)):.2f}"
        print(f"{name:14}{len(data) / 1e6:8.1f}{mine * 1e3:10.1f}{shown:>16}", flush=True)


def row(name: str, formats: list[str], other: Any, seconds: float) -> dict[str, list[float]]:
    """One network: shares of the eager time, and of the other's load time, by format that it has."""
    module, inputs = MODELS[name].make(torch), MODELS[name].inputs(torch)
    files = {}
    for kind in formats:
        try:
            files[kind] = WRITERS[kind](module, inputs)
        except RuntimeError as error:
            print(f"{name:12}{kind}: {str(error).splitlines()[0][:90]}", flush=True)
    runs: list[Callable[[], Any]] = [lambda: module(*inputs)]
    for kind, data in files.items():
        found = loaded(torch, kind, data)
        found = found.module() if kind == "pt2" else found
        runs.append(lambda found=found: found(*inputs))
    with torch.no_grad():
        times = least(runs, seconds)
    line, result = f"{name:12}{times[0] * 1e3:9.3f}", {}
    for kind, taken in zip(files, times[1:], strict=True):
        data = files[kind]
        load = once(lambda kind=kind, data=data: loaded(torch, kind, data))
        line += f"{taken / times[0]:12.2f}{load * 1e3:9.1f}"
        result[kind] = [taken / times[0]]
        if other is not None and kind != "onnx":
            result[kind].append(load / once(lambda kind=kind, data=data: loaded(other, kind, data)))
            line += f"{result[kind][1]:8.2f}"
    print(line, flush=True)
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--formats", default=",".join(WRITERS))
    parser.add_argument("--against", help="a module with torch's functions, such as torch")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each time")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    formats = options.formats.split(",")
    other = importlib.import_module(options.against) if options.against else None
    if options.large:
        large(formats, other)
        return
    head = f"{'':12}{'eager ms':>9}"
    for kind in formats:
        head += f"{kind:>12}{'load ms':>9}" + (f"{'share':>8}" if other is not None and kind != "onnx" else "")
    print(head)
    found = [row(name, formats, other, options.seconds) for name in options.only.split(",")]
    for kind in formats:
        shares = [one[kind][0] for one in found if kind in one]
        slower = sum(share > 1 for share in shares)
        print(f"{kind}: median {statistics.median(shares):.2f} of eager, {slower} of {len(shares)} above 1")
        if other is not None and kind != "onnx":
            loads = statistics.median(one[kind][1] for one in found if kind in one)
            print(f"{kind}: loads in {loads:.2f} of {options.against}'s time")


if __name__ == "__main__":
    main()
