"""A training step of a small network, eager and through CUDA graphs, timed like `mlp.train` of the workloads. Prints
`name microseconds us` rows.

usage: python -m gpu_parts.mlp_step MODULE [--device cuda] [--quick]

`graphed`: the model's passes are replays (make_graphed_callables), the optimizer runs eagerly. `captured`: the whole
step is one graph, with a capturable optimizer. `compiled`, `compiled_graphs` (torchlite alone): torch.compile of the
whole step, the second with mode="reduce-overhead". Each is first checked against eager steps from the same weights: the
losses of some steps.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

STEPS = 6  # compared


class Training:
    """The network, its data and its optimizer, from the same numbers each time."""

    def __init__(self, T: Any, device: str, start: dict, **how: Any):
        nn = T.nn
        self.T, self.device = T, device
        self.model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.model.load_state_dict(start["weights"])
        self.model.to(device)
        self.x, self.y = start["x"].to(device), start["y"].to(device)
        self.loss_of = nn.CrossEntropyLoss()
        self.optimizer = T.optim.Adam(self.model.parameters(), lr=1e-3, **how)

    def step(self) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss_of(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss


def start_of(T: Any) -> dict:
    T.manual_seed(0)
    nn = T.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return {"weights": model.state_dict(), "x": T.randn(32, 64), "y": T.randint(0, 10, (32,))}


def eager(T: Any, device: str, start: dict) -> tuple[Callable, int]:
    """A step, and how many were made before."""
    return Training(T, device, start).step, 0


def graphed(T: Any, device: str, start: dict) -> tuple[Callable, int]:
    training = Training(T, device, start)
    training.model = T.cuda.make_graphed_callables(training.model, (training.x.clone(),))
    return training.step, 0


def captured(T: Any, device: str, start: dict) -> tuple[Callable, int]:
    training = Training(T, device, start, capturable=True)
    stream = T.cuda.Stream()
    stream.wait_stream(T.cuda.current_stream())
    with T.cuda.stream(stream):
        for _ in range(3):
            training.step()
    T.cuda.current_stream().wait_stream(stream)
    graph = T.cuda.CUDAGraph()
    training.optimizer.zero_grad(set_to_none=True)
    with T.cuda.graph(graph):
        loss = training.step()

    def replay(keeps: Any = training) -> Any:  # the graph reads and writes the memory of its parameters
        graph.replay()
        return loss

    return replay, 3


def compiled(T: Any, device: str, start: dict, mode: str | None = None) -> tuple[Callable, int]:
    return T.compile(Training(T, device, start).step, fullgraph=True, mode=mode), 0


def compiled_graphs(T: Any, device: str, start: dict) -> tuple[Callable, int]:
    return compiled(T, device, start, "reduce-overhead")


def losses(step: Callable, count: int) -> list[float]:
    return [float(step().item()) for _ in range(count)]


def check(step: Callable, before: int, want: list[float]) -> None:
    """The step's losses against those of eager steps."""
    found = losses(step, STEPS)
    for n, (mine, right) in enumerate(zip(found, want[before : before + STEPS], strict=True)):
        if not abs(mine - right) <= 1e-3 * abs(right):
            raise AssertionError(f"the loss of step {before + n} is {mine:.6f}, eagerly {right:.6f}")


def timed(T: Any, device: str, step: Callable, count: int) -> float:
    """The median, in microseconds, of a step with waiting for it."""
    module = getattr(T, device.split(":")[0], None)
    wait = getattr(module, "synchronize", lambda: None)
    for _ in range(max(count // 10, 3)):
        step()
    wait()
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        step()
        wait()
        found.append(time.perf_counter() - begun)
    return statistics.median(found) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    T = importlib.import_module(options.module)
    sys.modules.setdefault("torch", T)
    start = start_of(T)
    want = losses(eager(T, options.device, start)[0], STEPS + 3)
    on_cuda = options.device.split(":")[0] == "cuda"
    forms = (eager, graphed, captured) if on_cuda else (eager,)
    if options.module == "torchlite":
        forms += (compiled, compiled_graphs) if on_cuda else (compiled,)
    for form in forms:
        try:
            step, before = form(T, options.device, start)
            check(step, before, want)
            print(f"{form.__name__} {timed(T, options.device, step, 20 if options.quick else 300):.4g} us", flush=True)
        except Exception as error:
            print(f"{form.__name__} FAILED {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)


if __name__ == "__main__":
    main()
