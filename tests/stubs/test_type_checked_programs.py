"""The programs that type checkers accept are right: they run. `tox -e types` has them, and invalid_programs.py,
checked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[1] / "type_checking"


@pytest.mark.parametrize("name", ["valid_tensors", "valid_training"])
def test_program_runs(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAMS / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
