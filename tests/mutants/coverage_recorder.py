"""A plugin of pytest that records which tests run each line: `pytest -p tests.mutants.coverage_recorder`.

`MUTANTS_MAP` names the folder that each process writes its part to, `MUTANTS_PART` the part, and `MUTANTS_SOURCES` the
folders to watch. An event of `sys.monitoring` is switched off at its first occurrence in a test, so tests take little
longer.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import sys
import time

import pytest

# Per line: more tests say no more about it.
_MOST_TESTS = 48
_CASES = int(os.environ.get("MUTANTS_CASES", "4"))
_TOOL = 3


class Recorder:
    """The lines of each test that passes."""

    def __init__(self, roots: list[str]):
        self.roots = tuple(os.path.realpath(root) + os.sep for root in roots)
        self.known: dict[str, str | None] = {}
        self.lines: set[tuple[str, int]] = set()
        self.passed = False
        self.tests: list[tuple[str, float]] = []
        self.covering: dict[tuple[str, int], list[int]] = collections.defaultdict(list)

    def on_line(self, code, line):
        name = code.co_filename
        if name not in self.known:
            real = os.path.realpath(name)
            self.known[name] = real if real.startswith(self.roots) else None
        if self.known[name] is not None:
            self.lines.add((self.known[name], line))
        return sys.monitoring.DISABLE

    def finish(self, nodeid: str, seconds: float) -> None:
        number, lines, self.lines = len(self.tests), self.lines, set()  # threads may go on
        self.tests.append((nodeid, round(seconds, 3)))
        for place in list(lines):
            covering = self.covering[place]
            if len(covering) < _MOST_TESTS:
                covering.append(number)
            else:  # the slowest makes room
                slowest = max(range(_MOST_TESTS), key=lambda i: self.tests[covering[i]][1])
                if self.tests[covering[slowest]][1] > seconds:
                    covering[slowest] = number

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.lines, self.passed, began = set(), True, time.process_time()
        sys.monitoring.restart_events()
        result = yield
        if self.passed:
            self.finish(item.nodeid, time.process_time() - began)
        return result

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.passed = False

    def pytest_sessionfinish(self):
        sys.monitoring.set_events(_TOOL, 0)
        files: dict[str, dict[int, list[int]]] = collections.defaultdict(dict)
        top = os.path.commonpath(self.roots)  # the checkout: mutations name their files from there
        for (path, line), tests in self.covering.items():
            files[pathlib.Path(path).relative_to(top).as_posix()][line] = tests
        folder = pathlib.Path(os.environ["MUTANTS_MAP"])
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{os.environ['MUTANTS_PART']}-{os.getpid()}.json"
        part.write_text(json.dumps({"tests": self.tests, "files": files}), encoding="utf-8")


def pytest_configure(config):
    if sys.version_info < (3, 12):
        raise pytest.UsageError("the map of tests needs sys.monitoring, of Python 3.12")
    recorder = Recorder(os.environ["MUTANTS_SOURCES"].split(os.pathsep))
    sys.monitoring.use_tool_id(_TOOL, "mutants")
    sys.monitoring.register_callback(_TOOL, sys.monitoring.events.LINE, recorder.on_line)
    sys.monitoring.set_events(_TOOL, sys.monitoring.events.LINE)
    config.pluginmanager.register(recorder)


def pytest_collection_modifyitems(items):
    """Of each test function some cases, spread over all."""
    cases = collections.defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    wanted = set()
    for found in cases.values():
        wanted.update(id(item) for item in found[:: max(1, -(-len(found) // _limit(found[0].nodeid)))])
    items[:] = [item for item in items if id(item) in wanted]


def _limit(nodeid: str) -> int:
    """The tables of ops and behaviours are what runs each kernel: all their rows count."""
    return 100_000 if nodeid.startswith(("tests/ops/test_ops.py", "tests/behaviours/")) else _CASES
