"""Each data file of the tests stands in CONTRIBUTING's table of recorded files, with a generator that exists."""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
SOURCES = {".py", ".h", ".cpp", ".ini"}


def table() -> dict[str, str]:
    """The generators of the table by the patterns of their files."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("## Recorded files") :]
    section = section[: section.index("\n## ", 1)]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| `")]
    return {pattern: generator.strip() for files, _, generator in rows for pattern in re.findall("`([^`]+)`", files)}


TABLE = table()


def data_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "tests"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # a source distribution
        found = [path for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    else:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    return sorted(path.relative_to(TESTS).as_posix() for path in found if path.suffix not in SOURCES | {".pyc"})


def test_every_data_file_is_in_the_table():
    names = data_files()
    missing = [name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in TABLE)]
    unused = [pattern for pattern in TABLE if not fnmatch.filter(names, pattern)]
    assert not unused, f"CONTRIBUTING.md, Recorded files, names no file by {unused}"
    assert not missing, f"CONTRIBUTING.md, Recorded files, lacks {missing}"


@pytest.mark.parametrize("pattern", [pattern for pattern, generator in TABLE.items() if generator != "by hand"])
def test_files_and_generators_exist(pattern):
    assert list(TESTS.glob(pattern))
    words = re.findall("`([^`]+)`", TABLE[pattern])[0].split()
    if words[0].startswith("tools/"):
        text = (ROOT / words[0]).read_text()
        stem = pathlib.PurePath(pattern)
        assert stem.name in text or stem.stem in text or stem.parent.name in text, "it names no such file"
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2])
    else:
        name = words[0].partition("(")[0]
        module, _, function = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), function))
