"""Runs the Array API standard's own suite (github.com/data-apis/array-api-tests) on torchlite itself.

    python -m tests.array_api CHECKOUT [--namespace] [pytest's arguments]

CHECKOUT is a clone of the suite with its submodule. What PyTorch's meaning of a name rules out is in
`array_api_xfails.txt`, by reasons; a test of that list that passes, and a line that no test matches, fails the run.
`--namespace` tests what `x.__array_namespace__()` gives, with its own list.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SUITE = "array_api_tests/"
_NAMESPACE = "exec('import torchlite; xp = torchlite.ones(1).__array_namespace__()')"
_SYNTAX = {"{": "(?:", "}": ")", ",": "|", "*": ".*"}


def pattern(line: str) -> re.Pattern[str]:
    """A line of a list: `*` stands for anything, `{a,b}` for one of several, which may have braces in turn."""
    depth, text = 0, ""
    for letter in line:
        depth += (letter == "{") - (letter == "}")
        special = letter in "{}*" or letter == "," and depth
        text += _SYNTAX[letter] if special else re.escape(letter)
    return re.compile(text)


def lines(file: Path) -> list[str]:
    """The lines of a list without comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def expected(file: Path, tests: list[str]) -> list[str]:
    """The tests that a list says must fail. ValueError for a line that matches none."""
    found: set[str] = set()
    for line in lines(file):
        matching = [test for test in tests if pattern(line).fullmatch(test.removeprefix(SUITE))]
        if not matching:
            raise ValueError(f"{file.name}: no test of the suite matches {line}")
        found.update(matching)
    return [test for test in tests if test in found]


def main(arguments: list[str]) -> int:
    """The suite's exit status; 2 without a checkout."""
    if not arguments or not (Path(arguments[0]) / SUITE).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    checkout, *rest = arguments
    namespace = "--namespace" in rest
    rest = [a for a in rest if a != "--namespace"]
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": _NAMESPACE if namespace else "torchlite",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q"]
    listing = subprocess.run(
        [*command, "--collect-only", SUITE], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    tests = [line for line in listing.stdout.splitlines() if line.startswith(SUITE)]
    must_fail = expected(HERE / ("array_api_namespace_xfails.txt" if namespace else "array_api_xfails.txt"), tests)
    if not any(a.startswith("--max-examples") for a in rest):
        rest += ["--max-examples", "50"]
    if not any(a.startswith(SUITE) for a in rest):
        rest.append(SUITE)
    with tempfile.TemporaryDirectory() as folder:
        xfails = Path(folder) / "xfails.txt"
        xfails.write_text("".join(f"{test}\n" for test in must_fail))
        # One seed for all tests: what derandomizes each by itself hashes addresses in. Nothing is replayed.
        environment["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        options = [f"--xfails-file={xfails}", "-o", "xfail_strict=true", "--disable-deadline", "--hypothesis-seed=0"]
        return subprocess.run([*command, *options, *rest], cwd=checkout, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
