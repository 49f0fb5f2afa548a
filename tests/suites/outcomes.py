"""A plugin of pytest that writes each test's outcome as it comes: `pytest -p outcomes`, alone in its folder.

`SUITE_OUTCOMES` names the file, to which each test adds a line when it starts and when it ends. A process that dies
leaves the name of the test that it died in. `SUITE_TESTS` names a file with the tests to run; without it the tests are
only listed.
"""

import json
import os
import pathlib

import pytest

_FILE = pathlib.Path(os.environ["SUITE_OUTCOMES"])


def _write(*what):
    with _FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def pytest_collection_modifyitems(config, items):
    wanted = os.environ.get("SUITE_TESTS")
    if wanted is None:
        for item in items:
            _write("listed", item.nodeid)
        items[:] = []
        return
    names = set(json.loads(pathlib.Path(wanted).read_text(encoding="utf-8")))
    items[:] = [item for item in items if item.nodeid in names]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid, location):
    _write("started", nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    """A test that fails in its setup or teardown fails."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _write("failed", report.nodeid, str(crash.message if crash else report.longrepr)[:400])
    elif report.skipped:
        _write("skipped", report.nodeid)
    elif report.when == "call":
        _write("passed", report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report):
    if report.failed:
        _write("uncollected", report.nodeid, str(report.longrepr)[-400:])
