"""Peak memory of loops that leave things behind where references run in circles: caught errors, hooks, custom
Functions, each 60 times on tensors of 20 MB, and of 3,000 training steps.

usage: python benchmarks/loop_memory.py MODULE [LOOP] [--device cpu] [--steps 3000]

MODULE is `torchlite` or `torch`. Without LOOP every loop runs in a process of its own and prints its line: peak MB
above what the import and a first use take, and what `gc.collect()` found afterwards (it must be 0). `steps` prints the
growth of the process between a tenth of the steps and their end.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import resource
import subprocess
import sys
from typing import Any

SIZE = 20 * 2**20 // 4


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


class Loops:
    """The loops, over one library and device."""

    def __init__(self, torch: Any, device: str, size: int) -> None:
        self.torch, self.device, self.size = torch, device, size

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, factor: float) -> Any:
                ctx.save_for_backward(x)
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * ctx.factor, None

        self.scaled = Scaled

    def leaf(self) -> Any:
        return self.torch.ones(self.size, device=self.device, requires_grad=True)

    def errors(self) -> None:
        x, y = self.leaf(), self.torch.ones(self.size - 1, device=self.device)
        try:
            x * 2 + y
        except RuntimeError:
            return
        raise AssertionError("no error")

    def errors_of_modules(self) -> None:
        layer = self.torch.nn.Linear(8, 8, device=self.device)
        try:
            layer(self.leaf().view(-1, 16) * 2)
        except RuntimeError:
            return
        raise AssertionError("no error")

    def functions_without_backward(self) -> None:
        self.scaled.apply(self.leaf(), 2.0)

    def functions(self) -> None:
        self.scaled.apply(self.leaf(), 2.0).sum().backward()

    def tensor_hooks(self) -> None:
        x = self.leaf()
        y = x * 2
        y.register_hook(lambda g: g * 2)
        x.register_hook(lambda g: g)
        y.sum().backward()

    def module_hooks(self) -> None:
        layer = self.torch.nn.Tanh()
        layer.register_forward_hook(lambda m, i, o: None)
        layer.register_full_backward_hook(lambda m, i, o: None)
        layer(self.leaf()).sum().backward()

    def plain(self) -> None:
        (self.leaf() * 2).sum().backward()


NAMES = [name for name in vars(Loops) if not name.startswith("_") and name != "leaf"]


def steps(torch: Any, device: str, count: int) -> None:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    model[2].register_full_backward_hook(lambda m, i, o: None)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 64, device=device), torch.zeros(32, dtype=torch.int64, device=device)
    early = 0.0
    gc.collect()
    for step in range(count):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step == count // 10:
            early = now()
    print(f"{'steps':28} {now() - early:8.1f} MB more after {count} than after {count // 10}, collector {gc.collect()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("loop", nargs="?")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=3000)
    given = parser.parse_args()
    if given.loop is None:
        for name in [*NAMES, "steps"]:
            options = ["--device", given.device, "--steps", str(given.steps)]
            subprocess.run([sys.executable, __file__, given.module, name, *options], check=True)
        return
    torch = importlib.import_module(given.module)
    if given.loop == "steps":
        steps(torch, given.device, given.steps)
        return
    getattr(Loops(torch, given.device, 2**10), given.loop)()  # what is imported and compiled at the first use
    loops = Loops(torch, given.device, SIZE)
    gc.collect()
    before = peak()
    for _ in range(60):
        getattr(loops, given.loop)()
    print(f"{given.loop:28} {peak() - before:8.1f} MB at most, collector {gc.collect()}")


if __name__ == "__main__":
    main()
