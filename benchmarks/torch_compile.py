"""`torch.compile` beside the same functions as they are written, in one process and in turn, on one device.

    python benchmarks/torch_compile.py [--device opencl] [--only mlp,chain] [--rounds 5] [--mode reduce-overhead]

A row has medians of a call in microseconds: as it is written, compiled, and their ratio (below 1 the compiled one is
faster). "train" is a whole training step, compiled as one function; "module" compiles the module alone. "apart" is the
time as it is written where every op is started by itself: devices join large elementwise ops that follow each other
without being told. "first" is what the first two calls, which are captured, and the third took together, in
milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.nn import functional as F


class Block(nn.Module):
    """A layer of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    """Embeddings, layers and a head."""

    def __init__(self, words: int, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def perceptron(device: str) -> tuple[Any, Any, Any]:
    """A model of three layers, its inputs and targets."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return model.to(device), torch.randn(32, 64, device=device), torch.randint(0, 10, (32,), device=device)


def transformer(batch: int, length: int, width: int, layers: int) -> Callable:
    """A function of the device that makes a GPT, its inputs and targets."""

    def make(device: str) -> tuple[Any, Any, Any]:
        tokens = torch.randint(0, 1000, (batch, length), device=device)
        targets = torch.randint(0, 1000, (batch, length), device=device)
        return GPT(1000, width, 4, layers, length).to(device), tokens, targets

    return make


def network(device: str) -> tuple[Any, Any, Any]:
    """A small network of convolutions with batch norms, its inputs and targets."""

    def block(given: int, made: int) -> list:
        return [nn.Conv2d(given, made, 3, 2, 1, bias=False), nn.BatchNorm2d(made), nn.ReLU()]

    model = nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(1024, 10))
    return model.to(device), torch.randn(16, 3, 32, 32, device=device), torch.randint(0, 10, (16,), device=device)


def training(make: Callable, optimizer: Any, whole: bool, compiled: Callable) -> Callable:
    """The row of a training step. whole: compile the step and not the module."""

    def row(device: str) -> tuple[Callable, Callable]:
        steps = []
        for wrap in (lambda f: f, compiled):
            torch.manual_seed(0)
            model, x, y = make(device)
            steps.append(_step(model, x, y, optimizer(model.parameters()), wrap, whole))
        return steps[0], steps[1]

    return row


def _step(model: Any, x: Any, y: Any, optimizer: Any, wrap: Callable, whole: bool) -> Callable:
    called = model if whole else wrap(model)

    def step() -> Any:
        optimizer.zero_grad()
        found = called(x)
        loss = F.cross_entropy(found.flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return wrap(step) if whole else step


def chain(compiled: Callable) -> Callable:
    """The row of elementwise ops over large tensors."""

    def row(device: str) -> tuple[Callable, Callable]:
        x, y = torch.randn(4096, 1024, device=device), torch.randn(4096, 1024, device=device)

        def f(x: Any, y: Any) -> Any:
            return ((x * 2 + y).tanh() * x - y).relu()

        g = compiled(f)
        return (lambda: f(x, y)), (lambda: g(x, y))

    return row


def normalised(compiled: Callable) -> Callable:
    """The row of elementwise ops with smaller operands and sums at the end, over large tensors."""

    def row(device: str) -> tuple[Callable, Callable]:
        x, scale = torch.randn(4096, 1024, device=device), torch.randn(1024, device=device)
        shift = torch.randn(4096, 1, device=device)

        def f(x: Any, scale: Any, shift: Any) -> Any:
            return ((x * scale + shift).sigmoid() * x).sum(1)

        g = compiled(f)
        return (lambda: f(x, scale, shift)), (lambda: g(x, scale, shift))

    return row


def rows(mode: str | None) -> dict[str, Callable]:
    """The rows by name: functions of the device that give the function as it is written, and compiled."""

    def compiled(f: Any) -> Any:
        return torch.compile(f, mode=mode)

    def adam(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, lr=1e-3)

    def adamw(parameters: Any) -> Any:
        return torch.optim.AdamW(parameters, lr=1e-3)

    def sgd(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)

    small, large = transformer(8, 32, 64, 2), transformer(8, 128, 256, 4)
    return {
        "mlp.train": training(perceptron, adam, True, compiled),
        "mlp.module": training(perceptron, adam, False, compiled),
        "gpt_small.train": training(small, adamw, True, compiled),
        "gpt.train": training(large, adamw, True, compiled),
        "gpt.module": training(large, adamw, False, compiled),
        "cnn.train": training(network, sgd, True, compiled),
        "big.chain": chain(compiled),
        "big.sums": normalised(compiled),
    }


def synchronize(device: str) -> None:
    if not device.startswith("cpu"):
        getattr(torch, device.partition(":")[0]).synchronize(device)


@contextlib.contextmanager
def ops_apart(device: str) -> Iterator[None]:
    """A time in which no op of a device waits for the next one."""
    if device.startswith("cpu"):
        yield
        return
    from torchlite_backends.device_runtime.core import lazy_fusion

    before, lazy_fusion.LazyQueue.least = lazy_fusion.LazyQueue.least, 1 << 62
    try:
        yield
    finally:
        lazy_fusion.LazyQueue.least = before


def timed(f: Callable, device: str, seconds: float) -> float:
    """The median time of a call in microseconds, of as many as fit."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        synchronize(device)
        found.append(time.perf_counter() - start)
    return statistics.median(found) * 1e6


def measured(row: Callable, device: str, rounds: int, seconds: float) -> tuple[float, float, float, float]:
    """(apart, as written, compiled, first) of a row: medians over rounds in which each takes its turn."""
    written, compiled = row(device)
    start = time.perf_counter()
    for _ in range(3):
        compiled()
    synchronize(device)
    first = (time.perf_counter() - start) * 1e3
    for f in (written, compiled) * 3:
        f()
    synchronize(device)
    found: list[tuple] = []
    for _ in range(rounds):
        with ops_apart(device):
            apart = timed(written, device, seconds)
        found.append((apart, timed(written, device, seconds), timed(compiled, device, seconds)))
    a, b, c = (statistics.median(column) for column in zip(*found, strict=True))
    return a, b, c, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="the rows whose names contain one of these, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn")
    parser.add_argument("--mode", default=None)
    given = parser.parse_args()
    print(f"{'':16}{'apart':>10}{'written':>10}{'compiled':>10}{'ratio':>8}{'of apart':>10}{'first ms':>10}")
    for name, row in rows(given.mode).items():
        if any(word in name for word in given.only.split(",")):
            a, b, c, first = measured(row, given.device, given.rounds, given.seconds)
            print(f"{name:16}{a:10.0f}{b:10.0f}{c:10.0f}{c / b:8.2f}{c / a:10.2f}{first:10.0f}", flush=True)


if __name__ == "__main__":
    main()
