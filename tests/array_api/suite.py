"""Runs the Array API standard's own suite (github.com/data-apis/array-api-tests) on torchlite itself.

    python -m tests.array_api CHECKOUT [--namespace] [pytest's arguments]

CHECKOUT is a clone of the suite with its submodule. What PyTorch's meaning of a name rules out is in
`xfails.txt`, by reasons; a test of that list that passes, and a line that no test matches, fails the run.
`--namespace` tests what `x.__array_namespace__()` gives, with its own list. The suite's pytest has this file as plugin.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def expected(file: Path, tests: list[str]) -> dict[str, bool]:
    """Return the tests that a list expects to fail, and whether they must. Raise ValueError if a line matches none."""
    found: dict[str, bool] = {}
    for line in file.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        wanted = pattern(line.removeprefix("~ "))
        matching = [test for test in tests if wanted.fullmatch(test.removeprefix(SUITE))]
        if not matching:
            raise ValueError(f"{file.name}: no test of the suite matches {line}")
        found.update(dict.fromkeys(matching, not line.startswith("~ ")))
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of the list."""
    namespace = os.environ["ARRAY_API_TESTS_MODULE"] == _NAMESPACE
    file = HERE / ("namespace_xfails.txt" if namespace else "xfails.txt")
    tests = [item.nodeid for item in items]
    try:
        listed = expected(file, tests)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.xfail(strict=listed[item.nodeid], reason=file.name))


def main(arguments: list[str]) -> int:
    """The suite's exit status; 2 without a checkout."""
    if not arguments or not (Path(arguments[0]) / SUITE).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    checkout, *rest = arguments
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": _NAMESPACE if "--namespace" in rest else "torchlite",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    rest = [a for a in rest if a != "--namespace"]
    if not any(a.startswith("--max-examples") for a in rest):
        rest += ["--max-examples", "50"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.array_api.suite", SUITE, "--disable-deadline"]
    return subprocess.run([*command, "--derandomize", *rest], cwd=checkout, env=environment, check=False).returncode
