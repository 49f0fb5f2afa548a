"""torchlite beside PyTorch, JAX, tinygrad and ONNX Runtime: installed sizes, import, cold start, and times of small
workloads on the CPU.

usage: python benchmarks/library_comparison.py --python torch=PATH --python jax=PATH ... [--rounds 5]
           [--json benchmarks/library_comparison.json] [--write-docs docs/explanation/comparison.md]
           [--picture docs/comparison.svg]

PATH is an interpreter of an environment that has the library; without one this interpreter is asked. A library that no
interpreter has is named and left out. torchlite is measured with NumPy alone, and `torchlite cc` with compiled kernels
where a C++ compiler is found. In each round every library runs in processes of its own, one library after the other;
the least time of all rounds counts. For stable figures the machine must be idle. tinygrad's CPU device needs `clang`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(__file__).with_name("library_workloads.py")
sys.path[:0] = [str(ROOT), str(ROOT / "backends"), str(ROOT / "benchmarks")]

from library_workloads import BATCH, COLD_STARTS, LARGE, SIZES, SQUARE  # noqa: E402

# Each library's distribution, and its title.
LIBRARIES = {
    "torchlite": ("torchlite-nd", "torchlite"),
    "torch": ("torch", "PyTorch"),
    "jax": ("jax", "JAX"),
    "tinygrad": ("tinygrad", "tinygrad"),
    "onnxruntime": ("onnxruntime", "ONNX Runtime"),
}
OWN_PARTS = ("jaxlib",)  # distributions that are a part of a library
ROWS = {
    "alone": "installed, without dependencies",
    "installed": "installed, with required packages",
    "import": "import",
    "cold_start": "start of Python to the first prediction",
    "op": "`x + y`, 4 x 4",
    "training": f"training step of an MLP, batch {BATCH}",
    "prediction": "prediction of this MLP",
    "product": f"product of {SQUARE} x {SQUARE} matrices",
    "gelu": f"`gelu`, {LARGE[0]} x {LARGE[1]}",
}
_SECTION = re.compile(r"(<!-- comparison ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def environment_of(python: str, engine: str, threads: int) -> dict[str, str]:
    """Return the environment of a library's processes; this interpreter's have this checkout's torchlite."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    found = {
        **os.environ,
        **limits,
        "TORCHLITE_CPU_KERNELS": engine,
        "JAX_PLATFORMS": "cpu",
        "DEV": "CPU",
        "TRAINING": "1",
    }
    if python == sys.executable:
        found["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "backends")])
    else:
        found.pop("PYTHONPATH", None)
    return found


def has_module(python: str, library: str, environment: dict[str, str]) -> bool:
    """True if an interpreter has a library; a `torch` that is torchlite under PyTorch's name does not count."""
    code = (
        "import importlib.util as u, sys; s = u.find_spec(sys.argv[1]);"
        "sys.exit(not s or (sys.argv[1] == 'torch' and 'torchlite' in open(s.origin).read(5000)))"
    )
    command = [python, "-c", code, library]
    return subprocess.run(command, capture_output=True, check=False, env=environment).returncode == 0


def size_of(path: Path) -> int:
    """Bytes on the disk of a file or a folder."""
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file() and not f.is_symlink()]
    return sum(f.stat().st_blocks * 512 for f in files)


def installed_sizes(python: str, distribution: str) -> dict[str, float]:
    """Return the megabytes of a distribution and of each package that it requires, byte code included."""
    from packaging.requirements import Requirement

    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    folder = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    there = {package.name.lower().replace("_", "-"): package for package in metadata.distributions(path=[folder])}
    sizes: dict[str, float] = {}
    wanted = [distribution]
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name in sizes or name not in there:
            continue
        package = there[name]
        roots = {Path(folder, file.parts[0]) for file in package.files or () if ".." not in file.parts}
        sizes[name] = sum(size_of(root) for root in roots if root.exists()) / 1e6
        for text in package.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    return sizes


def seconds_of(command: list[str], environment: dict[str, str], folder: str) -> float:
    """Return the wall time of a process that must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)
    return time.perf_counter() - start


def write_models(folder: str) -> None:
    """Write the ONNX files of the workloads that ONNX Runtime has."""
    import torchlite as torch

    class Add(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    class Square(torch.nn.Module):
        def forward(self, x):
            return x @ x

    nn = torch.nn
    mlp = nn.Sequential(nn.Linear(*SIZES[0]), nn.ReLU(), nn.Linear(*SIZES[1]), nn.ReLU(), nn.Linear(*SIZES[2])).eval()
    models: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "op": (Add(), (torch.ones(4, 4), torch.ones(4, 4))),
        "product": (Square(), (torch.ones(SQUARE, SQUARE),)),
        "gelu": (nn.GELU(), (torch.ones(LARGE),)),
        "mlp": (mlp, (torch.ones(BATCH, SIZES[0][0]),)),
    }
    for name, (model, inputs) in models.items():
        names = ["x", "y"][: len(inputs)]
        torch.onnx.export(model, inputs, os.path.join(folder, f"{name}.onnx"), input_names=names, opset_version=20)


class Measurement:
    """The least times of the rounds, by library and row."""

    def __init__(self, pythons: dict[str, str], threads: int, seconds: float, folder: str):
        self.folder, self.threads, self.seconds = folder, threads, seconds
        self.rows: dict[str, dict[str, float]] = {}
        self.contestants: dict[str, tuple[str, str, dict[str, str]]] = {}
        for library in LIBRARIES:
            python = pythons.get(library, sys.executable)
            environment = environment_of(python, "numpy", threads)
            if not has_module(python, library, environment):
                print(f"{library}: absent from {python}; left out", flush=True)
                continue
            self.contestants[library] = library, python, environment
        if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++")):
            print("torchlite cc: no C++ compiler; left out", flush=True)
        else:
            python = pythons.get("torchlite", sys.executable)
            self.contestants["torchlite cc"] = "torchlite", python, environment_of(python, "cc", threads)

    def keep_least(self, name: str, row: str, value: float) -> None:
        rows = self.rows.setdefault(name, {})
        rows[row] = min(value, rows.get(row, value))

    def run_round(self) -> None:
        """Measure each library once, after an empty program."""
        for name, (library, python, environment) in self.contestants.items():
            if name == library:
                empty = seconds_of([python, "-c", "pass"], environment, self.folder)
                imported = seconds_of([python, "-c", f"import {library}"], environment, self.folder)
                self.keep_least(name, "import", max(imported - empty, 0))
                start = seconds_of([python, "-c", COLD_STARTS[library]], environment, self.folder)
                self.keep_least(name, "cold_start", start)
            words = [python, str(WORKLOADS), library, self.folder, str(self.threads), str(self.seconds)]
            done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=self.folder, check=False)
            if done.returncode:
                sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            for row, value in json.loads(done.stdout.splitlines()[-1]).items():
                self.keep_least(name, row, value)


def processor() -> str:
    """Return the processor's name, where the system tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def format_cell(row: str, value: float | None) -> str:
    """Return megabytes, or a time in a readable unit; a dash for what a library does not have."""
    if value is None:
        return "-"
    if row in ("alone", "installed"):
        return f"{value:.0f} MB"
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 0.9995 or unit == "us":
            number = value * factor
            return f"{number:.0f} {unit}" if number >= 99.5 else f"{number:.3g} {unit}"
    raise AssertionError


def to_markdown(report: dict[str, Any]) -> dict[str, str]:
    """Return the generated sections of a page: the table, and where it was measured."""
    names = sorted(report["rows"], key=[*LIBRARIES, "torchlite cc"].index)
    names.sort(key=lambda name: not name.startswith("torchlite"))
    titles = ["torchlite" if n == "torchlite" else LIBRARIES[n][1] if n in LIBRARIES else n for n in names]
    lines = [f"|  | {' | '.join(titles)} |", f"| --- |{' ---: |' * len(names)}"]
    for row, title in ROWS.items():
        cells = [format_cell(row, report["rows"][name].get(row)) for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    versions = ", ".join(f"{LIBRARIES[name][1]} {version}" for name, version in report["versions"].items())
    machine = (
        f"- {versions}; Python {report['python']}\n"
        f"- {report['processor']}, {report['threads']} cores; load average up to {report['load']:.1f}\n"
        f"- {report['date']}, least times of {report['rounds']} rounds"
    )
    return {"table": "\n".join(lines), "machine": machine}


def fill_page(page: Path, sections: dict[str, str]) -> None:
    """Write the sections between `<!-- comparison NAME -->` and `<!-- end -->`."""
    text = page.read_text()
    page.write_text(_SECTION.sub(lambda m: f"{m[1]}\n{sections[m[2]]}\n\n{m[3]}", text))


def sizes_of(contestants: dict[str, tuple[str, str, dict[str, str]]]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return each library's version, and the rows of its sizes."""
    versions, rows = {}, {}
    for library, python, environment in contestants.values():
        code = f"from importlib.metadata import version; print(version({LIBRARIES[library][0]!r}))"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=environment)
        versions[library] = done.stdout.strip()
        sizes = installed_sizes(python, LIBRARIES[library][0])
        print(f"{library}: " + ", ".join(f"{name} {size:.0f} MB" for name, size in sizes.items()))
        rows[library] = {
            "alone": next(iter(sizes.values())) + sum(sizes.get(name, 0) for name in OWN_PARTS),
            "installed": sum(sizes.values()),
        }
    return versions, rows


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the rounds; return the report, which is written after each round. With --add an earlier report of the same
    versions on the same machine counts as earlier rounds.
    """
    pythons = dict(word.split("=", 1) for word in options.python)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_models(folder)
        measurement = Measurement(pythons, options.threads, options.seconds, folder)
        versions, sizes = sizes_of(measurement.contestants)
        about = {"processor": processor(), "threads": options.threads, "python": platform.python_version()}
        about["versions"] = versions
        report = {
            "date": datetime.date.today().isoformat(),
            **about,
            "load": os.getloadavg()[0],
            "rounds": 0,
            "rows": {},
        }
        if options.add and options.json.exists():
            earlier = json.loads(options.json.read_text())
            if any(earlier[name] != value for name, value in about.items()):
                sys.exit(f"{options.json} is of another machine, or of other versions")
            earlier["load"] = max(earlier["load"], report["load"])
            report, measurement.rows = earlier, earlier["rows"]
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", flush=True)
            measurement.run_round()
            rows = {name: {**found, **sizes.get(name, {})} for name, found in measurement.rows.items()}
            report |= {"rounds": report["rounds"] + 1, "rows": rows}
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PATH", help="a library's interpreter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each workload of each round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="the report's file; with --from-json it is read, nothing is measured")
    parser.add_argument("--add", action="store_true", help="rounds in addition to those of the report")
    parser.add_argument("--from-json", action="store_true")
    parser.add_argument("--write-docs", type=Path, help="fill a page's generated sections")
    parser.add_argument("--picture", type=Path, help="draw README's bars as SVG")
    options = parser.parse_args()
    if (options.from_json or options.add) and not options.json:
        parser.error("--from-json and --add need --json FILE")
    report = json.loads(options.json.read_text()) if options.from_json else measure(options)
    sections = to_markdown(report)
    print(f"{sections['table']}\n\n{sections['machine']}")
    if options.write_docs:
        fill_page(options.write_docs, sections)
    if options.picture:
        from library_chart import draw

        options.picture.write_text(draw(report))


if __name__ == "__main__":
    main()
