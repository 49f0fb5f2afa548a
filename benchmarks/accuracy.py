"""Relative errors of reductions in float32 against float64, over rows of 10 to 1e9 elements, beside PyTorch's.

usage: python benchmarks/accuracy.py [--reference-python PATH] [--least 1] [--most 8] [--only sum,var] [--table FILE]

Each library and engine runs in a process of its own on the same numbers: NumPy's kernels, engine cc, the device
"opencl" and, with `--reference-python`, the PyTorch of that environment. An entry is the root mean square of the
errors of several rows (200 of 10 elements, one from 1e8 on). The error of a row of results is the greatest one:
relative to the element for softmax and cumsum, relative to the largest element for layer norm. `--most 9` needs
16 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# Engine: the library, the device, and the variable TORCHLITE_CPU_KERNELS.
ENGINES = {
    "NumPy": ("torchlite", "cpu", "numpy"),
    "cc": ("torchlite", "cpu", "cc"),
    "opencl": ("torchlite", "opencl", "numpy"),
    "PyTorch": ("torch", "cpu", ""),
}
OPS = "sum mean var norm dot layer_norm softmax logsumexp cumsum".split()
_PIECE = 1 << 22


def _pieces(x: np.ndarray) -> Any:
    return (x[start : start + _PIECE].astype(np.float64) for start in range(0, len(x), _PIECE))


def _total(x: np.ndarray, term: Any = lambda piece: piece) -> float:
    return math.fsum(float(term(piece).sum()) for piece in _pieces(x))


def _greatest_error(found: np.ndarray, x: np.ndarray, right: Any, relative: bool) -> float:
    """Return the greatest error of a row; `right` maps a piece of the input in float64 to results."""
    worst = largest = 0.0
    for start, piece in zip(range(0, len(x), _PIECE), _pieces(x), strict=True):
        expected = right(piece)
        error = np.abs(found[start : start + _PIECE] - expected)
        worst = max(worst, float((error / np.abs(expected) if relative else error).max()))
        largest = max(largest, float(np.abs(expected).max()))
    return worst if relative else worst / largest


def error_of(torch: Any, op: str, x: np.ndarray, device: str) -> float:
    """Return the relative error of an op's result for a row."""
    t = torch.from_numpy(x).to(device)
    n = len(x)
    if op in ("layer_norm", "softmax", "cumsum"):
        if op == "layer_norm":
            found = torch.nn.functional.layer_norm(t, (n,))
            mean = _total(x) / n
            scale = 1 / math.sqrt(_total(x, lambda piece: (piece - mean) ** 2) / n + 1e-5)
            return _greatest_error(found.cpu().numpy(), x, lambda piece: (piece - mean) * scale, False)
        if op == "softmax":
            found = torch.softmax(t, 0)
            shift = math.log(_total(x, np.exp))
            return _greatest_error(found.cpu().numpy(), x, lambda piece: np.exp(piece - shift), True)
        before = 0.0

        def sums(piece: np.ndarray) -> np.ndarray:
            nonlocal before
            out = before + np.cumsum(piece)
            before = float(out[-1])
            return out

        return _greatest_error(torch.cumsum(t, 0).cpu().numpy(), x, sums, True)
    if op == "var":
        mean = _total(x) / n
        found, right = torch.var(t), _total(x, lambda piece: (piece - mean) ** 2) / (n - 1)
    elif op == "norm":
        found, right = torch.linalg.vector_norm(t), math.sqrt(_total(x, np.square))
    elif op == "dot":
        found, right = torch.dot(t, t), _total(x, np.square)
    elif op == "logsumexp":
        found, right = torch.logsumexp(t, 0), math.log(_total(x, np.exp))
    else:
        found, right = getattr(torch, op)(t), _total(x) / (n if op == "mean" else 1)
    return abs(float(found) - right) / abs(right)


def _row(op: str, n: int, seed: int) -> np.ndarray:
    """Return uniform numbers of [0, 1), or normal ones for the ops that usually get them."""
    generator = np.random.default_rng(seed)
    if op in ("layer_norm", "softmax", "logsumexp"):
        return generator.standard_normal(n, np.float32)
    return generator.random(n, np.float32)


def measure(library: str, device: str, ops: list[str], sizes: list[int]) -> dict[str, dict[str, float]]:
    """Return the errors by op and size of a library, in this process."""
    torch: Any = __import__(library)
    found: dict[str, dict[str, float]] = {}
    for op in ops:
        for size in sizes:
            n = 10**size
            rows = 1 if size >= 8 else max(3, min(200, 10**6 // n))
            errors = [error_of(torch, op, _row(op, n, seed), device) for seed in range(rows)]
            found.setdefault(op, {})[str(size)] = math.sqrt(sum(e * e for e in errors) / rows)
    return found


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return a Markdown table: a row for each op and engine, a column for each size."""
    first = next(iter(results.values()))
    sizes = list(next(iter(first.values())))
    lines = ["| op | engine | " + " | ".join(f"1e{size}" for size in sizes) + " |", "|---" * (2 + len(sizes)) + "|"]
    for op in first:
        for engine, errors in results.items():
            lines.append(f"| {op} | {engine} | " + " | ".join(f"{errors[op][size]:.1e}" for size in sizes) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference-python", help="the Python of an environment with PyTorch")
    parser.add_argument("--least", type=int, default=1, help="the power of ten of the shortest rows (default: 1)")
    parser.add_argument("--most", type=int, default=8, help="the power of ten of the longest rows (default: 8)")
    parser.add_argument("--only", default=",".join(OPS), help="ops, separated by commas")
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--table", help="a file to which the Markdown table is written")
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "DEVICE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    ops, sizes = options.only.split(","), list(range(options.least, options.most + 1))
    if options.child:
        print(json.dumps(measure(*options.child, ops, sizes)))
        return
    results = {}
    for engine in options.engines.split(","):
        library, device, kernels = ENGINES[engine]
        if library == "torch" and not options.reference_python:
            continue
        python = options.reference_python if library == "torch" else sys.executable
        environment = {**os.environ, "TORCHLITE_CPU_KERNELS": kernels}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "backends")])
        sizes_wanted = ["--least", str(options.least), "--most", str(options.most)]
        command = [python, __file__, "--child", library, device, "--only", options.only, *sizes_wanted]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        results[engine] = json.loads(done.stdout)
    text = table(results)
    print(text)
    if options.table:
        Path(options.table).write_text(text + "\n")


if __name__ == "__main__":
    main()
