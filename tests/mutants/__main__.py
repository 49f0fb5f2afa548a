"""`python -m tests.mutants`: draws mutations of the source and lists those that no test notices.

A mutant is a copy of the tree with one fault. Three rounds of tests run against it, the first failure ends them: the
quickest tests that run the line, all cases of their functions, and the folder that mirrors the file's. A failure counts
if the same test passes without the mutation. Tests that do not end count if they pass without it in a quarter of the
time. Survivors that mean the same as the source are listed with the reason in
`tests/mutants/equivalent.txt`. The working tree is never changed.

`--map FOLDER` is a map of the lines that tests run, which `--record` makes with Python 3.12 or later. It can be named
folders and files of tests, and leaves out those that the map has.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

from .covering_tests import Covering
from .mutations import Mutation, compiles, mutations_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ("torchlite", "backends", "tests", "tools", "docs", "examples", "benchmarks")
SOURCES = ["torchlite/**/*.py", "backends/torchlite_backends/**/*.py"]
# What a machine without the device does not run, and text that is no Python of ours.
WITHOUT = (
    "torchlite/_stubs/", "torchlite/_cli/bench/", "backends/torchlite_backends/cupy/",
    "backends/torchlite_backends/opencl/", "backends/torchlite_backends/nccl/", "backends/torchlite_backends/mpi/",
    "backends/torchlite_backends/device_runtime/", "backends/torchlite_backends/kernel_sources/",
)  # fmt: skip
# Folders whose tests are of the repository, or start many processes: no part of the map.
NOT_MAPPED = (
    "hostile", "array_api", "benchmarks", "nvrtc", "cuda_simulator", "type_checking", "cuda", "stubs", "threads",
    "multiprocessing", "oracle", "mutants", "suites",
)  # fmt: skip
# Tests of the first round: most mutants that a test notices are noticed by these.
_FIRST = 8
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", re.MULTILINE)
EQUIVALENT = pathlib.Path(__file__).with_name("equivalent.txt")


@dataclasses.dataclass
class Verdict:
    """What became of a mutant: killed, survivor, equivalent, or slow (a time limit)."""

    mutation: Mutation
    before: str
    after: str
    outcome: str
    by: str = ""

    def lines(self) -> str:
        m = self.mutation
        return f"{self.outcome}: {m.path}:{m.line} ({m.kind})\n    - {self.before}\n    + {self.after}" + (
            f"\n    {self.by}" if self.by else ""
        )


def read_equivalent() -> dict[tuple[str, str, str], str]:
    """The mutations that change nothing: file, line before, line after, and the reason."""
    found = {}
    for block in EQUIVALENT.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            path, before, after, reason = lines
            found[path, before.removeprefix("- "), after.removeprefix("+ ")] = reason
    return found


def room_of(path: str) -> str:
    """The room of a file: the folder below torchlite/ or torchlite_backends/."""
    parts = path.split("/")[1 if path.startswith("torchlite") else 2 :]
    return parts[0].strip("_") if len(parts) > 1 else "root"


def draw(seed: int, count: int, globs: list[str]) -> list[tuple[Mutation, str]]:
    """Draw mutations, as many of each room as of the others, of files at random by their number of mutations."""
    chosen = random.Random(seed)
    paths = sorted(path for glob in globs for path in ROOT.glob(glob) if path.suffix == ".py")
    rooms: dict[str, list[tuple[Mutation, str]]] = collections.defaultdict(list)
    for path in dict.fromkeys(paths):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(WITHOUT):
            source = path.read_text(encoding="utf-8")
            rooms[room_of(name)] += [(mutation, source) for mutation in mutations_of(name, source)]
    order = sorted(rooms)
    chosen.shuffle(order)
    drawn: list[tuple[Mutation, str]] = []
    # A room's share grows with the root of what it holds: small rooms have their turn, large ones more than one.
    weights = [len(rooms[room]) ** 0.5 for room in order]
    while len(drawn) < count and any(rooms.values()):
        room = chosen.choices(order, weights)[0]
        if rooms[room]:
            mutation, source = rooms[room].pop(chosen.randrange(len(rooms[room])))
            if compiles(mutation.apply(source)):
                drawn.append((mutation, source))
    return drawn


def survivors_of(file: pathlib.Path) -> list[tuple[Mutation, str]]:
    """The mutations of an earlier run that no test noticed, as the source has them now."""
    found = []
    for verdict in json.loads(file.read_text(encoding="utf-8")):
        path, line = verdict["mutation"]["path"], verdict["mutation"]["line"]
        if verdict["outcome"] not in ("killed", "equivalent") and (ROOT / path).exists():
            source = (ROOT / path).read_text(encoding="utf-8")
            lines = (verdict["before"], verdict["after"])
            same = [mutation for mutation in mutations_of(path, source) if mutation.changed_lines(source) == lines]
            if same:  # else the line has changed
                found.append((min(same, key=lambda mutation: abs(mutation.line - line)), source))
    return found


class Copy:
    """A copy of the tree that mutants live in, one at a time."""

    def __init__(self, folder: pathlib.Path, python: str):
        self.folder, self.python = folder, python
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, folder / path.name)
        paths = os.pathsep.join([str(folder), str(folder / "backends")])
        self.environment = {
            **os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "TORCHLITE_CACHE_DIR": str(folder / "cache"),
        }  # fmt: skip
        self.written = 0

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation, source: str) -> Iterator[None]:
        """The file with the mutation, which gets a time of its own: Python keeps compiled files by their time."""
        path = self.folder / mutation.path
        times = path.stat()
        self.written += 1
        path.write_text(mutation.apply(source), encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + self.written))
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))

    def run(self, tests: list[str], limit: float) -> tuple[int | None, str]:
        """Pytest's status, None after the limit, and what it printed."""
        command = [self.python, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *tests]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=output, stderr=output, process_group=0
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(limit)
            ended = process.returncode is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what tests have started
            status = process.wait()
            output.seek(0)
            return (status if ended else None), output.read()


class Run:
    """One run of the program: the copies, and what each test does without a mutation."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments = arguments
        self.covering = Covering(arguments.map, ROOT)
        self.equivalent = read_equivalent()
        self.copies = [Copy(folder / str(i), arguments.python) for i in range(arguments.jobs)]
        self.clean: dict[str, bool] = {}
        self.lock = threading.Lock()

    def rounds(self, mutation: Mutation) -> list[list[str]]:
        """The tests of each round, without those of rounds before."""
        of_op = ["tests/ops/test_ops.py", "-k", f"{mutation.op}-"] if mutation.op else []
        rounds = [of_op or self.covering.quick(mutation)[:_FIRST], self.covering.functions(mutation)]
        if self.arguments.wide:
            rounds.append([self.covering.folder(mutation.path)])
        return [tests for i, tests in enumerate(rounds) if tests and tests not in rounds[:i]]

    def judge(self, mutation: Mutation, source: str) -> Verdict:
        before, after = mutation.changed_lines(source)
        verdict = Verdict(mutation, before, after, "survivor")
        reason = self.equivalent.get((mutation.path, before, after))
        if reason is not None:
            return dataclasses.replace(verdict, outcome="equivalent", by=reason)
        with self.lock:
            copy = self.copies.pop()
        try:
            self.try_rounds(verdict, mutation, source, copy)
        finally:
            with self.lock:
                self.copies.append(copy)
        return verdict

    def try_rounds(self, verdict: Verdict, mutation: Mutation, source: str, copy: Copy) -> None:
        passing: list[str] = []
        tried = []
        for tests in self.rounds(mutation):
            left_out: list[str] = []
            began = time.monotonic()
            while (left := self.arguments.limit - (time.monotonic() - began)) > 0:
                with copy.mutated(mutation, source):
                    status, printed = copy.run([*tests, *(f"--deselect={name}" for name in left_out)], left)
                if status in (0, 5):
                    passing += tests
                    break
                if status is None:
                    if self.passes(tests, copy, self.arguments.limit / 4):
                        verdict.outcome, verdict.by = "killed", "the tests do not end"
                        return
                    tried.append("time limit")
                    break
                failed = next(iter(_FAILED.findall(printed)), "")
                if failed and not self.passes([failed], copy, self.arguments.limit):
                    left_out.append(failed)  # it fails without the mutation too
                    continue
                if not failed and not self.loads(tests, copy):
                    tried.append("cannot be collected")
                    break
                verdict.outcome = "killed"
                verdict.by = failed or (printed.strip().splitlines() or ["the process"])[-1][:200]
                return
        verdict.by = "; ".join(tried) or ("" if passing else "no test runs the line")
        if not passing and "time limit" in tried:
            verdict.outcome = "slow"

    def passes(self, tests: list[str], copy: Copy, limit: float) -> bool:
        """Whether tests pass without a mutation in the given seconds."""
        key = " ".join((*tests, str(limit)))
        if key not in self.clean:
            self.clean[key] = copy.run(tests, limit)[0] == 0
        return self.clean[key]

    def loads(self, tests: list[str], copy: Copy) -> bool:
        key = " ".join(tests)
        if key not in self.clean:
            self.clean[key] = copy.run([*tests, "--collect-only"], self.arguments.limit)[0] == 0
        return self.clean[key]


def record(arguments: argparse.Namespace, folder: pathlib.Path) -> None:
    """Make the map, one folder or file of tests after the other; those that the map has stay as they are."""
    copy = Copy(folder / "recorded", arguments.python)
    sources = os.pathsep.join(str(copy.folder / name) for name in ("torchlite", "backends/torchlite_backends"))
    copy.environment |= {"MUTANTS_MAP": str(arguments.map.resolve()), "MUTANTS_SOURCES": sources}
    everything = [path for path in sorted((ROOT / "tests").iterdir()) if path.name not in NOT_MAPPED]
    for name in arguments.globs or [
        f"tests/{path.name}" for path in everything if path.match("test_*.py") or any(path.rglob("test_*.py"))
    ]:
        part = part_of(name)
        if any(arguments.map.glob(f"{part}-*.json")):
            continue
        copy.environment["MUTANTS_PART"] = part
        status, printed = copy.run(["-p", "tests.mutants.coverage_recorder", "--maxfail=100", name], 3600)
        print(name, status, (printed.strip().splitlines() or [""])[-1], flush=True)


def part_of(tests: str) -> str:
    """The name of the map's part with a folder or file of tests."""
    return tests.strip("/").replace("/", "-").removesuffix(".py")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "globs", nargs="*", help="files of the source to mutate; with --record folders and files of tests"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60, help="how many mutants to draw")
    parser.add_argument("--part", default="1/1", help="which part of them to run: 2/3 is the second of three")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=240, help="seconds a round of tests may take")
    parser.add_argument("--wide", action="store_true", help="the mirrored folder too")
    parser.add_argument("--map", type=pathlib.Path, help="folder of the map of lines that tests run")
    parser.add_argument("--record", action="store_true", help="make this map, or the parts of it that are missing")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the tests")
    parser.add_argument("--again", type=pathlib.Path, help="file of verdicts: its survivors alone")
    parser.add_argument("--json", type=pathlib.Path, help="file for the verdicts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torchlite-mutants-") as folder:
        if arguments.record:
            record(arguments, pathlib.Path(folder))
            return
        if arguments.again is not None:
            drawn = survivors_of(arguments.again)
        else:
            drawn = draw(arguments.seed, arguments.count, arguments.globs or SOURCES)
        part, parts = map(int, arguments.part.split("/"))
        drawn = drawn[part - 1 :: parts]
        if arguments.list:
            for mutation, source in drawn:
                before, after = mutation.changed_lines(source)
                print(f"{mutation.path}:{mutation.line} ({mutation.kind})\n    - {before}\n    + {after}")
            return
        verdicts = run_all(Run(arguments, pathlib.Path(folder)), drawn)
    counts = collections.Counter(verdict.outcome for verdict in verdicts)
    print(f"{len(verdicts)} mutants:", ", ".join(f"{counts[name]} {name}" for name in sorted(counts)))
    judged = len(verdicts) - counts["equivalent"]
    print(f"{counts['killed']} of {judged} that are not equivalent: {counts['killed'] / max(1, judged):.1%}")
    sys.exit(1 if counts["survivor"] else 0)


def run_all(run: Run, drawn: list[tuple[Mutation, str]]) -> list[Verdict]:
    """Judge all mutants, several at a time; print each verdict and add it to the file as it comes."""
    verdicts: list[Verdict] = []
    with concurrent.futures.ThreadPoolExecutor(run.arguments.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run.judge, *each) for each in drawn]):
            verdicts.append(future.result())
            print(verdicts[-1].lines(), flush=True)
            if run.arguments.json is not None:
                text = json.dumps([dataclasses.asdict(verdict) for verdict in verdicts], indent=1)
                run.arguments.json.write_text(text, encoding="utf-8")
    return verdicts


if __name__ == "__main__":
    main()
