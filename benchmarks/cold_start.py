"""The time from the start of Python to the first result of a model in a file, and the memory that it takes: torchlite
beside PyTorch and ONNX Runtime.

usage: python benchmarks/cold_start.py [--python torch=PATH] [--python onnxruntime=PATH] [--rounds 5] [--threads 1]
           [--engine numpy] [--silero FOLDER] [--only mlp.pt,mlp.onnx] [--write-docs docs/performance.md]

PATH is an interpreter of an environment that has the library; without one this interpreter is asked. Each measurement
is a new process, after one that is not counted: files are in the system's cache then, and byte code is written. In each
round the libraries take turns; the least time counts, and the least peak of memory. The networks are a perceptron of
0.1 MB as state dict, ONNX and TorchScript, a transformer of MiniLM's sizes as safetensors, and a MobileNetV2 as .pt2,
all with random weights. silero-vad's files come from its package, or from the folder that `--silero` names. A case or a
library that lacks something is left out, with the reason.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(__file__).with_name("cold_start_cases.py")
sys.path[:0] = [str(ROOT), str(ROOT / "backends"), str(ROOT / "benchmarks")]

import cold_start_cases  # noqa: E402
from library_comparison import LIBRARIES, environment_of, processor  # noqa: E402

# Each case: its title, the libraries that read such a file, and packages that they need.
CASES = {
    "mlp.pt": ("MLP, state dict", ("torchlite", "torch"), ()),
    "mlp.onnx": ("MLP, ONNX", ("torchlite", "onnxruntime"), ()),
    "mlp.ts": ("MLP, TorchScript", ("torchlite", "torch"), ()),
    "silero_vad.onnx": ("silero-vad, ONNX", ("torchlite", "onnxruntime"), ()),
    "silero_vad.jit": ("silero-vad, TorchScript", ("torchlite", "torch"), ()),
    "minilm.safetensors": ("MiniLM's sizes, safetensors", ("torchlite", "torch"), ("safetensors",)),
    "mobilenet.pt2": ("MobileNetV2, .pt2", ("torchlite", "torch"), ()),
}
TOLERANCE = 1e-3  # between the libraries' results, as a share of the larger
_SECTION = re.compile(r"(<!-- cold start -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclasses.dataclass
class Figures:
    """Figures that a process printed: milliseconds, modules, megabytes, and the first number of the result."""

    total: float
    imported: float
    loaded: float
    called: float
    modules: int
    memory: float
    result: float

    def least(self, other: Figures) -> Figures:
        """The figures of the quicker process, and the smaller peak of memory."""
        quicker = min(self, other, key=lambda figures: figures.total)
        return dataclasses.replace(quicker, memory=min(self.memory, other.memory))


def write_files(folder: Path, names: list[str], silero: Path | None) -> dict[str, Path | str]:
    """Write or find the file of each case; a text is the reason why there is none."""
    import torchlite as torch

    torch.manual_seed(0)
    found: dict[str, Path | str] = {name: folder / name for name in names}
    network = cold_start_cases.mlp(torch).eval()
    example = torch.ones(1, cold_start_cases.FEATURES)
    if "mlp.pt" in names:
        torch.save(network.state_dict(), folder / "mlp.pt")
    if "mlp.onnx" in names:
        path = folder / "mlp.onnx"
        torch.onnx.export(network, (example,), path, input_names=["x"], external_data=False)
    if "mlp.ts" in names:
        torch.jit.save(torch.jit.trace(network, example), folder / "mlp.ts")
    if "mobilenet.pt2" in names:
        from torchlite._cli.bench.workloads.vision_models import mobilenet_v2

        program = torch.export.export(mobilenet_v2(torch).eval(), (torch.ones(1, 3, 224, 224),))
        torch.export.save(program, folder / "mobilenet.pt2")
    if "minilm.safetensors" in names:
        if importlib.util.find_spec("safetensors") is None:
            found["minilm.safetensors"] = "the package safetensors is not installed"
        else:
            from safetensors.numpy import save_file

            weights = cold_start_cases.encoder(torch).state_dict()
            save_file({name: tensor.numpy() for name, tensor in weights.items()}, folder / "minilm.safetensors")
    for name in names:
        if name.startswith("silero_vad"):
            found[name] = find_silero_file(name, silero)
    return found


def find_silero_file(name: str, folder: Path | None) -> Path | str:
    """The file of silero-vad in a folder, or in the installed package; a text where there is none."""
    if folder is None:
        package = importlib.util.find_spec("silero_vad")
        if package is None or not package.submodule_search_locations:
            return "the package silero-vad is not installed, and --silero names no folder"
        folder = Path(package.submodule_search_locations[0], "data")
    path = folder / name
    return path if path.is_file() else f"{folder} has no file {name}"


def has_module(python: str, name: str, environment: dict[str, str]) -> bool:
    """Whether an interpreter finds a module; a `torch` that is torchlite under PyTorch's name does not count."""
    code = (
        "import importlib.util as u, sys; s = u.find_spec(sys.argv[1]);"
        "sys.exit(not s or (sys.argv[1] == 'torch' and 'torchlite' in open(s.origin).read(5000)))"
    )
    return not subprocess.run([python, "-c", code, name], capture_output=True, check=False, env=environment).returncode


def run_once(python: str, case: str, library: str, path: Path, environment: dict[str, str]) -> Figures:
    """The figures of one new process. RuntimeError if it fails."""
    start = time.perf_counter()
    words = [python, str(PROGRAM), case, library, str(path)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=path.parent
    ) as process:
        line = process.stdout.readline() if process.stdout else ""
        total = (time.perf_counter() - start) * 1e3
        _, errors = process.communicate()
    if process.returncode or not line:
        raise RuntimeError(f"{case} in {library}: {(errors.strip().splitlines() or ['no output'])[-1]}")
    imported, loaded, called, modules, memory, result = line.split()
    return Figures(total, float(imported), float(loaded), float(called), int(modules), float(memory), float(result))


class Measurement:
    """The least figures of the rounds, by case and library, and what was left out."""

    def __init__(self, pythons: dict[str, str], threads: int, engine: str, files: dict[str, Path | str]):
        self.figures: dict[str, dict[str, Figures]] = {}
        self.left_out: list[str] = []
        self.versions: dict[str, str] = {}
        self._runs: list[tuple[str, str, str, Path, dict[str, str]]] = []
        for case, path in files.items():
            title, libraries, needs = CASES[case]
            if isinstance(path, str):
                self._leave_out(f"{title}: {path}")
                continue
            for library in libraries:
                python = pythons.get(library, sys.executable)
                environment = environment_of(python, engine if library == "torchlite" else "numpy", threads)
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                missing = [n for n in (library, *needs) if not has_module(python, n, environment)]
                if missing:
                    self._leave_out(f"{title} in {LIBRARIES[library][1]}: its interpreter has no {missing[0]}")
                else:
                    self._runs.append((python, case, library, path, environment))
                    self.versions.setdefault(library, version_of(python, library, environment))

    def _leave_out(self, reason: str) -> None:
        self.left_out.append(reason)
        print(f"left out: {reason}", flush=True)

    def run_round(self, counts: bool = True) -> None:
        """Measure each case in each library once."""
        for python, case, library, path, environment in self._runs:
            found = run_once(python, case, library, path, environment)
            if counts:
                row = self.figures.setdefault(case, {})
                row[library] = found.least(row[library]) if library in row else found

    def disagreements(self) -> list[str]:
        """The cases whose libraries compute different results."""
        said = []
        for case, row in self.figures.items():
            results = [figures.result for figures in row.values()]
            if max(results) - min(results) > TOLERANCE * max(map(abs, results)):
                said.append(f"{CASES[case][0]}: the results differ: {dict(zip(row, results, strict=True))}")
        return said


def version_of(python: str, library: str, environment: dict[str, str]) -> str:
    """The version of an interpreter's library."""
    code = f"import {library}; print({library}.__version__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def to_markdown(measurement: Measurement, threads: int, engine: str, rounds: int) -> str:
    """The table of all cases, and where it was measured."""
    lines = [
        "| model | torchlite | import, load, call | PyTorch | ONNX Runtime | ratio | modules | memory |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for case, row in measurement.figures.items():
        if "torchlite" not in row:
            continue
        ours = row["torchlite"]
        others = [row[name] for name in ("torch", "onnxruntime") if name in row]
        cells = [f"{row[name].total:.0f} ms" if name in row else "-" for name in ("torch", "onnxruntime")]
        ratio = f"{ours.total / others[0].total:.2f}" if others else "-"
        memory = " of ".join(f"{figures.memory:.0f}" for figures in (ours, *others[:1]))
        parts = f"{ours.imported:.0f}, {ours.loaded:.0f}, {ours.called:.0f}"
        shown = (CASES[case][0], f"{ours.total:.0f} ms", parts, *cells, ratio, str(ours.modules), f"{memory} MB")
        lines.append(f"| {' | '.join(shown)} |")
    versions = ", ".join(f"{LIBRARIES[name][1]} {version}" for name, version in measurement.versions.items())
    about = [
        f"- {versions}; Python {platform.python_version()}; engine {engine}, threads: {threads}",
        f"- {processor()}; load average {os.getloadavg()[0]:.1f}",
        f"- {datetime.date.today().isoformat()}, least of {rounds} rounds",
        *(f"- left out: {reason}" for reason in measurement.left_out),
    ]
    return "\n".join([*lines, "", *about])


def fill_page(page: Path, text: str) -> None:
    """Write the table between `<!-- cold start -->` and `<!-- end -->`."""
    page.write_text(_SECTION.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page.read_text()))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PATH", help="a library's interpreter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", default="numpy", help="torchlite's kernels on the CPU")
    parser.add_argument("--silero", type=Path, help="the folder of silero-vad's files")
    parser.add_argument("--only", default=",".join(CASES), help="cases, by the names of their files")
    parser.add_argument("--write-docs", type=Path, help="fill a page's generated section")
    options = parser.parse_args(words)
    names = options.only.split(",")
    if unknown := set(names) - set(CASES):
        parser.error(f"there is no case {', '.join(sorted(unknown))}; cases are {', '.join(CASES)}")
    pythons: dict[str, Any] = dict(word.split("=", 1) for word in options.python)
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), names, options.silero)
        measurement = Measurement(pythons, options.threads, options.engine, files)
        measurement.run_round(counts=False)
        for _ in range(options.rounds):
            measurement.run_round()
    text = to_markdown(measurement, options.threads, options.engine, options.rounds)
    print(text)
    if options.write_docs:
        fill_page(options.write_docs, text)
    wrong = measurement.disagreements()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
