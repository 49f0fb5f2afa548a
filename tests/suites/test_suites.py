"""The runner of other projects' suites, with this interpreter as both sides."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.suites.__main__ import kind_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = """
import os, pytest
@pytest.mark.parametrize("n", range(3))
def test_passes(n): pass
seen = []
def test_fails():
    seen.append(1)
    raise ValueError("always 17")
def test_needs_the_one_before(): assert seen
def test_skips(): pytest.skip()
def test_ends_the_process():
    if os.environ.get("SIDE") == "b": os._exit(3)
def test_after_it(): pass
"""


@pytest.mark.slow
def test_the_share_of_what_passes(tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_some.py").write_text(SUITE)
    other = tmp_path / "other"  # an interpreter that is known by its environment
    other.write_text(f'#!/bin/sh\nSIDE=b exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "tests.suites",
        str(suite),
        "--reference",
        sys.executable,
        "--candidate",
        str(other),
    ]
    done = subprocess.run([*command, "--json", str(tmp_path / "found")], cwd=ROOT, capture_output=True, text=True)
    assert "8 tests, 6 pass with PyTorch, 5 of them with torchlite: 83.33%" in done.stdout, done.stdout + done.stderr
    assert "with PyTorch not passed: 1 failed, 1 skipped" in done.stdout
    found = {name.rpartition("::")[2]: what for name, (what, _) in json.loads((tmp_path / "found").read_text()).items()}
    assert found.pop("test_ends_the_process") == "died" and set(found.values()) == {"passed"}
    assert done.returncode == 0


def test_errors_of_one_kind():
    assert kind_of("ValueError: 3 at 0x7f3a\nmore") == kind_of("ValueError: 12.5 at 0x11") == "ValueError: N at N"
