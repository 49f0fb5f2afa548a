"""What training steps on CUDA cost the host: the Python between one launch and the next, on a driver that computes
nothing. No GPU is needed.

usage: python benchmarks/host_cost.py [--only gpt] [--steps 20] [--profile]

It tells how fast work can be given to a GPU, which bounds small and medium models, and where that time goes
(`--profile`). It does not tell how long kernels take, nor what CuPy, cuBLAS and the driver take for an allocation, a
product or a launch, some microseconds each: the driver of
`tests/nvrtc/recording_driver.py` takes their place here, with a cuBLAS
whose calls return at once. Convolutions run as our own kernels, since there is no cuDNN. The calls of functions (C's
among them) hardly differ between runs, times do: on a busy machine compare the former.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends")]

import torchlite as torch  # noqa: E402
from tests.nvrtc.recording_driver import Driver, Recording  # noqa: E402
from torchlite._dispatch import register_backend  # noqa: E402
from torchlite_backends.cupy.backend import CUDABackend  # noqa: E402

nn, F = torch.nn, torch.nn.functional


class Block:
    """Memory that is only an address."""

    __slots__ = ("ptr", "size")
    _addresses = itertools.count(1 << 48, 1 << 32)

    def __init__(self, size: int):
        self.ptr, self.size = next(self._addresses), size


class Counting(Driver):
    """A device whose launches and products are counted."""

    alone, count, allocate = True, 0, staticmethod(Block)

    def launch(self, *_: int) -> None:
        self.count += 1

    def blas(self) -> Any:
        return self

    def cublasGemmEx(self, *_: Any) -> int:
        self.count += 1
        return 0

    cublasGemmStridedBatchedEx = cublasGemmEx
    cublasCreate_v2 = cublasSetStream_v2 = cublasSetWorkspace_v2 = cublasSetMathMode = staticmethod(lambda *_: 0)


class Layer(nn.Module):
    """A transformer's block."""

    def __init__(self, width: int):
        super().__init__()
        self.before, self.between, self.into, self.out = (
            nn.LayerNorm(width),
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.rest = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.into(self.before(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        )
        return x + self.rest(self.between(x))


class Bottleneck(nn.Module):
    """The block of ResNet-50."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()

        def normed(*how):
            return nn.Sequential(nn.Conv2d(*how, bias=False), nn.BatchNorm2d(how[1]))

        self.first, self.second, self.third = (
            normed(channels, width, 1),
            normed(width, width, 3, stride, 1),
            normed(width, 4 * width, 1),
        )
        self.short = normed(channels, 4 * width, 1, stride) if channels != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.third(F.relu(self.second(F.relu(self.first(x))))) + self.short(x))


def training(model, given, target, optimizer) -> Callable[[], None]:
    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(given).flatten(0, -2), target).backward()
        optimizer.step()

    return step


def add() -> Callable:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    return lambda: x + y


def mlp() -> Callable:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return training(
        model, torch.randn(32, 64), torch.randint(0, 10, (32,)), torch.optim.Adam(model.parameters(), lr=1e-3)
    )


def gpt() -> Callable:
    model = nn.Sequential(
        nn.Embedding(1000, 256), *[Layer(256) for _ in range(4)], nn.LayerNorm(256), nn.Linear(256, 1000, bias=False)
    )
    return training(
        model,
        torch.randint(0, 1000, (8, 128)),
        torch.randint(0, 1000, (1024,)),
        torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def bottlenecks() -> Callable:
    sizes = (64, 64, 1), (256, 128, 2), (512, 256, 2), (1024, 512, 2)
    blocks = [
        block
        for channels, width, stride in sizes
        for block in (Bottleneck(channels, width, stride), Bottleneck(4 * width, width, 1))
    ]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )
    return training(
        model,
        torch.randn(4, 3, 64, 64),
        torch.randint(0, 1000, (4,)),
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="add,mlp,gpt,bottlenecks", help="workloads, separated by commas")
    parser.add_argument("--steps", type=int, default=20, help="steps, of which the fastest counts")
    parser.add_argument(
        "--profile", action="store_true", help="also the functions that take most of the time, themselves"
    )
    options = parser.parse_args()
    recording = Recording()
    recording.driver = driver = Counting()
    backend = CUDABackend(recording)
    register_backend("cuda", backend)
    backend.device(0).memory.peak = 1 << 60  # in a loop most allocations are no new peak
    torch.set_default_device("cuda")
    print(f"{'workload':<12}{'launches':>9}{'function calls':>16}{'us a launch':>13}{'ms a step':>11}")
    for name in options.only.split(","):
        step, times, profile = globals()[name](), [], cProfile.Profile()
        for _ in range(4):  # programs are built, and what comes for the second time is planned
            step()
        driver.count = 0
        for _ in range(options.steps if name != "add" else 100 * options.steps):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        launches = driver.count // len(times)
        for _ in range(options.steps):
            profile.runcall(step)
        calls: Any = pstats.Stats(profile)
        best, made = min(times), calls.total_calls // options.steps
        print(f"{name:<12}{launches:>9}{made:>16}{1e6 * best / launches:>13.2f}{1e3 * best:>11.4f}", flush=True)
        if options.profile:
            calls.sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    main()
