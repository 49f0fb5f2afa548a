"""`python -m tests.suites CHECKOUT`: how many tests of a project that pass with PyTorch pass with torchlite.

Both interpreters have the project's packages. In that of `--reference` `torch` is PyTorch, and in that of `--candidate`
torchlite stands in for it (`python -m torchlite as-torch --install`). The tests are listed with PyTorch, `--count` of
them are drawn by `--seed`. They run with PyTorch and with torchlite, and those that pass with PyTorch count. Both run
all of them in the same order, because tests take random numbers from those before them. After a test that ends the
process, or takes all its time, another process runs the rest.

    python -m tests.suites keras --reference REF --candidate OURS --env KERAS_BACKEND=torch --tests keras/src/layers
    python -m tests.suites transformers --reference REF --candidate OURS --tests tests/models/bert tests/models/gpt2
    python -m tests.suites pytorch_geometric --reference REF --candidate OURS --tests test/nn --count 600
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile

PLUGIN = pathlib.Path(__file__).with_name("outcomes.py")


class Suite:
    """A checkout, and how its tests are run."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments, self.folder = arguments, folder
        self.more = dict(pair.split("=", 1) for pair in arguments.env)
        self.numbers = itertools.count()
        (folder / "plugin").mkdir()
        (folder / "plugin" / PLUGIN.name).write_text(PLUGIN.read_text(encoding="utf-8"), encoding="utf-8")

    def run(self, python: str, paths: list[str], tests: list[str] | None) -> list[list[str]]:
        """What the plugin wrote of one process: of these tests, or the list of all."""
        place = self.folder / str(next(self.numbers))
        place.mkdir()
        outcomes = place / "outcomes"
        outcomes.touch()
        environment = {
            **os.environ, **self.more, "SUITE_OUTCOMES": str(outcomes), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(self.folder / "plugin"), *self.arguments.path]),
        }  # fmt: skip
        if tests is not None:
            (place / "tests").write_text(json.dumps(tests), encoding="utf-8")
            environment["SUITE_TESTS"] = str(place / "tests")
        command = [python, "-m", "pytest", "-q", "-p", "outcomes", "-p", "no:cacheprovider", "--tb=short"]
        command += ["--continue-on-collection-errors", *self.arguments.pytest, *paths]
        with (place / "output").open("w") as output:
            process = subprocess.Popen(
                command, cwd=self.arguments.checkout, env=environment, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(self.arguments.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        written = [json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines()]
        if not written:
            print((place / "output").read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr)
        return written

    def outcomes(self, python: str, tests: list[str]) -> dict[str, tuple[str, str]]:
        """The outcome of each test and the error's text. Where a process dies in a test, another one runs the rest."""
        found: dict[str, tuple[str, str]] = {}
        left = list(tests)
        while left:
            began, uncollected = None, ""
            for what, name, *text in self.run(python, list(dict.fromkeys(map(file_of, left))), left):
                if what == "uncollected":
                    uncollected = text[0]
                elif what == "started":
                    began = name
                    found[name] = "died", "the process died, or its time was up"
                elif found.get(name, ("died",))[0] != "failed":
                    found[name] = what, (text or [""])[0]
            missing = [name for name in left if name not in found]
            if began is None or found[began][0] != "died":  # all that can be collected has run
                found.update(dict.fromkeys(missing, ("missing", uncollected or "not collected")))
            left = [name for name in left if name not in found]
        return {name: found[name] for name in tests}

    def draw(self) -> list[str]:
        """The drawn tests, in the suite's order."""
        listed = self.run(self.arguments.reference, self.arguments.tests, None)
        names = [name for what, name, *_ in listed if what == "listed"]
        if self.arguments.count and self.arguments.count < len(names):
            names = sorted(random.Random(self.arguments.seed).sample(names, self.arguments.count), key=names.index)
        return names

    def compare(self, tests: list[str]) -> tuple[list[str], dict[str, tuple[str, str]]]:
        """Outcomes of the tests with PyTorch, and of those that pass there with torchlite."""
        reference = self.outcomes(self.arguments.reference, tests)
        candidate = self.outcomes(self.arguments.candidate, tests)
        passing = [name for name in tests if reference[name][0] == "passed"]
        return [reference[name][0] for name in tests], {name: candidate[name] for name in passing}


def file_of(test: str) -> str:
    return test.partition("::")[0]


def kind_of(text: str) -> str:
    """An error's first line, without what differs from case to case."""
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[+-]?\d+)?", "N", (text.strip().splitlines() or ["?"])[0])[:160]


def report(found: dict[str, tuple[str, str]], reference: collections.Counter[str]) -> None:
    lost = {name: text for name, (outcome, text) in found.items() if outcome != "passed"}
    kinds = collections.defaultdict(list)
    for name, text in lost.items():
        kinds[kind_of(text)].append(name)
    for kind, names in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(names)} {kind}", *names[:5], sep="\n    ")
    share = (len(found) - len(lost)) / max(1, len(found))
    others = ", ".join(f"{count} {outcome}" for outcome, count in reference.most_common() if outcome != "passed")
    print(f"with PyTorch not passed: {others or 'none'}")
    passing = f"{len(found)} pass with PyTorch, {len(found) - len(lost)} of them with torchlite: {share:.2%}"
    print(f"{reference.total()} tests, {passing}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--reference", required=True, help="an interpreter with PyTorch")
    parser.add_argument("--candidate", required=True, help="one where torchlite stands in for it")
    parser.add_argument("--tests", nargs="+", default=["."], help="files and folders of the checkout")
    parser.add_argument("--count", type=int, default=600, help="how many tests to draw; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--path", action="append", default=[], help="a folder for PYTHONPATH")
    parser.add_argument("--pytest", action="append", default=[], help="an argument of pytest, as --pytest=-oaddopts=")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900, help="seconds for a process")
    parser.add_argument("--least", type=float, default=0.0, help="fail below this share")
    parser.add_argument("--json", type=pathlib.Path, help="file for the outcomes")
    arguments = parser.parse_args()
    found: dict[str, tuple[str, str]] = {}
    reference: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="torchlite-suites-") as folder:
        suite = Suite(arguments, pathlib.Path(folder))
        drawn = suite.draw()
        files = list(dict.fromkeys(map(file_of, drawn)))
        parts = [
            [name for name in drawn if files.index(file_of(name)) % arguments.jobs == i] for i in range(arguments.jobs)
        ]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for outcomes, ours in pool.map(suite.compare, parts):
                reference.update(outcomes)
                found.update(ours)
    report(found, reference)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    passing = sum(outcome == "passed" for outcome, _ in found.values())
    sys.exit(0 if found and passing / len(found) >= arguments.least else 1)


if __name__ == "__main__":
    main()
