"""torchlite against PyTorch in one process, in turn, so that a noisy machine hits both alike. Prints each row's times
and the ratio (below 1 torchlite is faster).

usage: python benchmarks/against_torch.py [--rounds 30] [--threads 1] [--only add,mlp]      (needs the extra `oracle`)

The time of a row is the smallest over the rounds of the mean of a round's calls; the ratio is the median over the
rounds. CPU time of the calling thread is counted for the small rows, wall time for the rows marked with *, which use
several threads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any


def small(T: Any) -> dict[str, tuple[Callable, int]]:
    """Single ops on 4x4 tensors, forward and backward of a short chain."""
    x, y = T.randn(4, 4), T.randn(4, 4)
    g, h = T.randn(4, 4, requires_grad=True), T.randn(4, 4, requires_grad=True)
    return {
        "add": (lambda: x + y, 300),
        "add_grad": (lambda: g + h, 300),
        "matmul": (lambda: x @ y, 300),
        "matmul_grad": (lambda: g @ h, 300),
        "sum": (lambda: x.sum(0), 300),
        "sum_grad": (lambda: g.sum(0), 300),
        "exp_grad": (lambda: g.exp(), 300),
        "reshape_grad": (lambda: g.reshape(2, 8), 300),
        "getitem_grad": (lambda: g[1:3], 300),
        "fwdbwd": (lambda: ((g * h + g).tanh().sum()).backward(), 60),
    }


def trainer(T: Any, model: Any, x: Any, y: Any, optimizer: Any) -> Callable:
    """One training step."""
    loss = T.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def networks(T: Any) -> dict[str, tuple[Callable, int]]:
    """Whole training steps."""
    nn = T.nn
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    lenet = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 10),
    )
    block = nn.Sequential(
        nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(64 * 16, 10)
    )
    data = {
        "mlp": (mlp, T.randn(32, 64)),
        "lenet": (lenet, T.randn(32, 1, 28, 28)),
        "encoder": (block, T.randn(16, 16, 64)),
    }
    return {
        name: (trainer(T, model, x, T.randint(0, 10, (x.shape[0],)), T.optim.Adam(model.parameters(), lr=1e-3)), 5)
        for name, (model, x) in data.items()
    }


def large(T: Any) -> dict[str, tuple[Callable, int]]:
    """Ops on 4096 x 1024 float32."""
    x, y = T.randn(4096, 1024), T.randn(4096, 1024)
    F = T.nn.functional
    return {
        "softmax*": (lambda: x.softmax(1), 1),
        "layernorm*": (lambda: F.layer_norm(x, (1024,)), 1),
        "gelu*": (lambda: F.gelu(x), 1),
        "chain*": (lambda: ((x * 2 + y).tanh() * x - y).relu(), 1),
        "add*": (lambda: x + y, 1),
    }


def sparse(T: Any) -> dict[str, tuple[Callable, int]]:
    """A sparse matrix of 10,000 x 10,000 with ten elements a row, and dense ones of 64 columns."""
    n, per, width = 10_000, 10, 64
    rows, columns = T.arange(n).repeat_interleave(per), T.arange(n * per) * 7919 % n
    matrix = T.sparse_coo_tensor(T.stack([rows, columns]), T.randn(n * per), (n, n)).coalesce().to_sparse_csr()
    dense, turned = T.randn(n, width), T.randn(width, n)
    values = matrix.clone().requires_grad_()

    def step():
        T.sparse.mm(values, dense.requires_grad_()).sum().backward()
        values.grad = dense.grad = None

    return {
        "spmm*": (lambda: T.sparse.mm(matrix, dense.detach()), 1),
        "spmm_grad*": (step, 1),
        "sddmm*": (lambda: T.sparse.sampled_addmm(matrix, dense.detach(), turned), 1),
    }


def measure(function: Callable, count: int, clock: Callable[[], float]) -> float:
    """Microseconds a call, over `count` calls."""
    function()
    start = clock()
    for _ in range(count):
        function()
    return (clock() - start) / count * 1e6


def main() -> None:
    import torch

    import torchlite

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows: list[dict[str, tuple[Callable, int]]] = []
    for library in (torchlite, torch):
        library.set_num_threads(options.threads)
        library.manual_seed(0)
        rows.append({**small(library), **networks(library), **large(library), **sparse(library)})
    wanted = set(filter(None, options.only.split(",")))
    print(f"{'row':14} {'torchlite us':>12} {'torch us':>10} {'ratio':>6}")
    for name in rows[0]:
        if wanted and name.rstrip("*") not in wanted:
            continue
        clock = time.perf_counter if name.endswith("*") else time.thread_time
        times = [[measure(*row[name], clock) for row in rows] for _ in range(options.rounds)]
        mine, theirs = (min(column) for column in zip(*times, strict=True))
        print(f"{name:14} {mine:12.2f} {theirs:10.2f} {statistics.median(a / b for a, b in times):6.2f}", flush=True)


if __name__ == "__main__":
    main()
