"""The programs that type checkers accept are right: they run. `tox -e types` checks them, `programs` with the checkers'
defaults, and invalid_programs.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[1] / "type_checking"
BY_DEFAULT = sorted(path.stem for path in (PROGRAMS / "programs").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", ["valid_tensors", "valid_training", *(f"programs/{name}" for name in BY_DEFAULT)])
def test_program_runs(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAMS / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
