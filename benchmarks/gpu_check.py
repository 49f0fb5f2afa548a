"""One command for a machine with a GPU: the device tests, PyTorch's operator table, fused kernels against composites,
the workloads against torch on the same GPU (eager and through graphs), and the kernels' bandwidth beside that of a
copy. Writes one JSON file and one table, in under eight minutes.

    python benchmarks/gpu_check.py --shared ../shared --json gpu.json --table gpu.md
    python benchmarks/gpu_check.py --device opencl --quick          # every path, small, on a machine without a GPU
    python benchmarks/gpu_check.py --simulate-cuda --quick   # the same on the tests' CUDA simulator, which has graphs

It uses this checkout, installed or not, and installs nothing: what is missing is listed first, and what needs it is
left out and named in the table. Each part runs in a process of its own with a time limit, and keeps what it had when it
dies. Ends with 0, with 1 when a test failed (not when an aim is missed), and with 2 when the device cannot be used. The
parts: machine, speed, graphs, bench, fused, messages, tests, opdb (`--only tests,bench`; machine always runs).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_parts import Options, Result, checkout_environment
from gpu_parts.summary_table import aims_of, failures_of, table_of

# Seconds that each part may take; what one leaves the next ones may use.
LIMITS = {"machine": 45, "speed": 45, "graphs": 45, "bench": 190, "fused": 60, "messages": 20, "tests": 150, "opdb": 65}

MODULES = {
    "machine": "host_info",
    "speed": "bandwidth",
    "graphs": "cuda_graphs",
    "bench": "workload_ratios",
    "fused": "fused_kernel_check",
    "messages": "collectives",
    "tests": "device_tests",
}  # of the parts that bear another name


def limits_given(text: str) -> dict[str, float]:
    """{part: seconds}."""
    return {part: float(seconds) for part, seconds in (word.split("=") for word in text.split(",") if word)}


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    parser.add_argument(
        "--device", default=defaults.device, help="the device (default cuda); opencl and cpu for a dry run"
    )
    parser.add_argument(
        "--shared",
        default=defaults.shared,
        metavar="PATH",
        help="folder with `conformance` and `bench` (default ../shared)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="programs at a time in tests and opdb (default: the cores)",
    )
    parser.add_argument("--only", default="", metavar="PARTS", help=f"some of {','.join(LIMITS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rows: whether everything runs")
    parser.add_argument(
        "--simulate-cuda",
        action="store_true",
        help="the tests' CUDA simulator in the place of a GPU: slow, with --quick only",
    )
    parser.add_argument("--seconds", type=float, default=470.0, help="for all parts together (default 470)")
    parser.add_argument(
        "--limits",
        type=limits_given,
        default={},
        metavar="PART=SECONDS,…",
        help=f"other time limits than {','.join(f'{k}={v}' for k, v in LIMITS.items())}",
    )
    parser.add_argument("--pytest", default="", metavar="WORDS", help='more words for pytest, such as "-k softmax"')
    parser.add_argument("--json", default="", metavar="FILE", help="write everything there")
    parser.add_argument("--table", default="", metavar="FILE", help="write the table (Markdown) there")
    parser.add_argument(
        "--keep",
        default="",
        metavar="FOLDER",
        help="keep what the parts write there: logs, each test with its traceback",
    )
    parser.add_argument("--run-part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=60.0, help=argparse.SUPPRESS)
    parser.add_argument("--result", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def run_here(given: argparse.Namespace) -> None:
    """One part, in this process."""

    def leave(*_):
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)
    options = Options(**{f.name: getattr(given, f.name) for f in dataclasses.fields(Options)})
    result = Result(Path(given.result))
    part = importlib.import_module(f"gpu_parts.{MODULES.get(given.run_part, given.run_part)}")
    result.put(began=True)
    part.run(options, result)
    result.put(finished=True, seconds=round(time.monotonic() - result.begun, 1))


def command_of(part: str, given: argparse.Namespace, limit: float, path: Path) -> list[str]:
    words = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--run-part",
        part,
        "--limit",
        f"{limit:.1f}",
        "--result",
        str(path),
        "--device",
        given.device,
        "--shared",
        os.path.abspath(given.shared),
        "--workers",
        str(given.workers),
        f"--pytest={given.pytest}",
    ]
    return words + ["--quick"] * given.quick


def end(process: subprocess.Popen) -> None:
    """Ask a part to end, so that it ends what it has started, then make it."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def run_part(part: str, given: argparse.Namespace, limit: float, folder: Path, environment: dict[str, str]) -> dict:
    """What a part found, in a process of its own; with "died" where it did not come to its end."""
    path = folder / f"{part}.json"
    begun = time.monotonic()
    process = subprocess.Popen(
        command_of(part, given, limit, path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    last: list[str] = []

    def show() -> None:
        for line in process.stdout or ():
            last.append(line.rstrip())
            del last[:-20]
            print(f"[{part}] {line.rstrip()}", flush=True)

    reader = threading.Thread(target=show, daemon=True)
    reader.start()
    try:
        process.wait(limit + 5)
        late = False
    except subprocess.TimeoutExpired:
        late = True
    end(process)
    reader.join(2)
    found = json.loads(path.read_text()) if path.exists() else {}
    if not found.pop("finished", False):
        how = f"ended at its time limit of {limit:.0f} s" if late else f"died ({_ending(process.returncode)})"
        found["died"] = f"{how}: {' / '.join(line for line in last[-3:] if line)}"
    found.pop("began", None)
    found.setdefault("seconds", round(time.monotonic() - begun, 1))
    return found


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"


def limit_of(parts: list[str], limits: dict[str, float], left: float) -> float:
    """The seconds that the first of some parts may take: its own limit, and for tests and opdb, which come last, also
    what others have left.
    """
    own = min(limits[parts[0]], left)
    return max(own, left - sum(limits[part] for part in parts[1:])) if parts[0] in ("tests", "opdb") else own


def main(argv: list[str] | None = None) -> int:
    given = arguments(argv)
    if given.run_part:
        run_here(given)
        return 0
    unknown = sorted(set(filter(None, given.only.split(","))) - set(LIMITS))
    if unknown:
        print(f"there are no parts {', '.join(unknown)}: {', '.join(LIMITS)}")
        return 2
    wanted = [part for part in LIMITS if not given.only or part in given.only.split(",") or part == "machine"]
    until = time.monotonic() + given.seconds
    begun = time.monotonic()
    results: dict = {"device": given.device, "quick": given.quick, "simulated": given.simulate_cuda, "parts": {}}
    with contextlib.nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        environment = checkout_environment(folder / "checkout", given.simulate_cuda)
        while wanted:
            part = wanted[0]
            left = until - time.monotonic()
            limit = given.limits.get(part) or limit_of(wanted, LIMITS | given.limits, left)
            wanted = wanted[1:]
            if min(limit, left) < 5:
                results["parts"][part] = {"died": "no time was left for it"}
                continue
            print(f"--- {part} (at most {limit:.0f} s)", flush=True)
            results["parts"][part] = found = run_part(part, given, limit, folder, environment)
            if part == "machine" and (found.get("why_not") or "died" in found):
                print(f"{given.device} cannot be used: {found.get('why_not') or found['died']}")
                return 2
    results["seconds"] = round(time.monotonic() - begun, 1)
    results["failed"], results["aims"] = failures_of(results), aims_of(results)
    text = table_of(results)
    if given.json:
        Path(given.json).write_text(json.dumps(results, indent=1) + "\n")
    if given.table:
        Path(given.table).write_text(text)
    print("\n" + text)
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
