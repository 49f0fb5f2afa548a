"""A pytest plugin: each test's outcome goes to a file at once, and a worker whose device is lost is replaced instead of
failing all tests to come.
"""

from __future__ import annotations

import json
import os
import re

import pytest

# After these errors CUDA refuses everything in the process.
LOST = re.compile(
    r"ILLEGAL_ADDRESS|IllegalAddress|MISALIGNED_ADDRESS|MisalignedAddress|ILLEGAL_INSTRUCTION|IllegalInstruction"
    r"|LAUNCH_FAILED|LaunchFailure"
    r"|illegal memory access|misaligned address|unspecified launch failure|DeviceUninitialized"
)

_MOST_TEXT = 6000  # characters of a failure's traceback


def message_of(report: pytest.TestReport) -> str:
    """The line that says why a test failed."""
    text = str(report.longrepr or "")
    lines = [line[2:].strip() for line in text.splitlines() if line.startswith("E  ") and line[2:].strip()]
    last = text.strip().splitlines()[-1:] or [""]
    return (lines[0] if lines else last[0])[:300]


class Writer:
    """In the process that gathers the reports."""

    def __init__(self, path: str):
        self.path = path

    def write(self, **entry) -> None:
        with open(self.path, "a") as file:
            file.write(json.dumps(entry) + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids) -> None:
        self.write(total=len(ids))

    def pytest_collection_finish(self, session) -> None:
        if session.items:
            self.write(total=len(session.items))

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.write(id=report.nodeid or "collection", outcome="failed", message=message_of(report), seconds=0.0)

    def pytest_runtest_logreport(self, report) -> None:
        if (
            report.when in ("setup", "teardown")
            and report.outcome == "passed"
            or report.when == "teardown"
            and report.outcome == "skipped"
        ):
            return
        self.write(
            id=report.nodeid,
            outcome=report.outcome,
            message=message_of(report) if report.failed else "",
            seconds=getattr(report, "duration", 0.0),
            **({"text": str(report.longrepr)[-_MOST_TEXT:]} if report.failed else {}),
        )


class Leaver:
    """In a worker: leaves after a test that lost the device; pytest-xdist starts another worker."""

    def __init__(self):
        self.lost = False

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report) -> None:
        self.lost = self.lost or report.failed and LOST.search(str(report.longrepr)) is not None
        if self.lost and report.when == "teardown":
            os._exit(1)


def pytest_configure(config) -> None:
    path = os.environ.get("TORCHLITE_GPU_CHECK_OUTCOMES")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Leaver())
    elif path:
        config.pluginmanager.register(Writer(path))
