"""Small programs that were slow, and every op on 1e5 elements, beside PyTorch on the CPU.

usage: python benchmarks/beside_pytorch.py --python PATH [-k WORD] [--engines numpy,cc]
           [--rows data,products,quantized,pooling,convolutions,samplers,packages,ops]
           [--rounds 3] [--seconds 0.1] [--threads N] [--over RATIO] [--json FILE]

PATH is an interpreter of an environment that has PyTorch. Each engine of torchlite has one process, PyTorch another. In
each round a row runs in one process after the other, so that a busy machine slows all of them. The least time of the
rounds counts: wall time, and with `--threads 1` CPU time, which other programs change little. The table gives
PyTorch's time, and for each engine its time divided by PyTorch's. `--over` prints rows above this ratio alone. A row
that raises in one of them shows the error in place of a figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends"), str(ROOT / "benchmarks")]
SAMPLE = 2e-3  # a shorter statement is repeated


def rows_of(groups: list[str], word: str = "") -> dict[str, tuple[str, str]]:
    """Return the rows of groups, of all without a name, whose name has a word."""
    import beside_pytorch_rows as rows

    chosen = {key: value for group in groups or rows.GROUPS for key, value in rows.GROUPS[group].items()}
    return {key: value for key, value in chosen.items() if word in key}


def compile_row(torch: Any, prepare: str, statement: str) -> Callable[[int], None]:
    """Return a function that runs a row's statement so many times."""
    torch.manual_seed(0)
    torch.set_grad_enabled(True)
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(prepare, names)
    exec(f"def run(count):\n    for _ in range(count):\n        {statement}", names)
    found: Any = names["run"]
    return found


def seconds_of(run: Callable[[int], None], seconds: float, clock: Callable[[], float]) -> float:
    """Return the least time of one call in samples of about `seconds` in all, after a call that is not counted."""
    run(1)
    begin = clock()
    run(1)
    repeat = max(1, int(SAMPLE / max(clock() - begin, 1e-9)))
    samples: list[float] = []
    begin = time.perf_counter()
    while not samples or time.perf_counter() - begin < seconds:
        start = clock()
        run(repeat)
        samples.append((clock() - start) / repeat)
    return min(samples)


def work(library: str, threads: int) -> None:
    """Answer each line of the input, a row and a duration, with its time or its error."""
    torch: Any = __import__(library)
    answers, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    for line in sys.stdin:
        prepare, statement, seconds = json.loads(line)
        try:
            answer: Any = seconds_of(compile_row(torch, prepare, statement), seconds, clock)
        except Exception as error:
            answer = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process with one library."""

    def __init__(self, python: str, library: str, engine: str, threads: int):
        environment = {**os.environ, "TORCHLITE_CPU_KERNELS": engine}
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        command = [python, __file__, "--work", library, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**environment, **limits}
        )

    def time(self, row: tuple[str, str], seconds: float) -> float | str:
        """Return a row's time, or its error."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([*row, seconds]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the process ended in {row}")
        found: float | str = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def compare(rows: dict[str, tuple[str, str]], options: argparse.Namespace) -> dict[str, dict[str, float | str]]:
    """Time all rows; print and return each row's times by process."""
    engines = options.engines.split(",")
    workers = {"torch": Worker(options.python, "torch", "", options.threads)}
    workers |= {engine: Worker(sys.executable, "torchlite", engine, options.threads) for engine in engines}
    results: dict[str, dict[str, float | str]] = {}
    print(f"{'':44} {'PyTorch':>10} " + " ".join(f"{engine:>8}" for engine in engines))
    for name, row in rows.items():
        times: dict[str, float | str] = {}
        for _ in range(options.rounds):
            for label, worker in workers.items():
                found, before = worker.time(row, options.seconds), times.get(label)
                times[label] = min(found, before) if isinstance(found, float) and isinstance(before, float) else found
        results[name] = times
        if shown := format_row(name, times, engines, options.over):
            print(shown, flush=True)
    for worker in workers.values():
        worker.close()
    return results


def format_row(name: str, times: dict[str, float | str], engines: list[str], over: float) -> str:
    """Return a line of the table; nothing for a row whose ratios are all known and below `over`."""
    theirs = times["torch"]
    ratios = [
        times[engine] if isinstance(times[engine], str) else times[engine] / theirs  # type: ignore[operator]
        for engine in engines
        if isinstance(theirs, float)
    ]
    if over and all(isinstance(ratio, float) and ratio < over for ratio in ratios) and ratios:
        return ""
    cells = " ".join(f"{ratio:8.2f}" if isinstance(ratio, float) else ratio for ratio in ratios)
    return f"{name:44} {theirs * 1e6:8.1f}us {cells}" if isinstance(theirs, float) else f"{name:44} {theirs}"


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python")
    parser.add_argument("--rows", default="")
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("--engines", default="numpy,cc")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--over", type=float, default=0.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.threads)
    if not options.python:
        parser.error("--python is needed: an interpreter that has PyTorch")
    results = compare(rows_of(list(filter(None, options.rows.split(","))), options.word), options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
