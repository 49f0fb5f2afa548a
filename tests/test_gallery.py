"""The gallery's pages are of its scripts, and the scripts that need torchlite alone run, with few steps."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("make_gallery", ROOT / "tools" / "make_gallery.py")
make_gallery = importlib.util.module_from_spec(SPEC)
sys.modules["make_gallery"] = make_gallery  # dataclasses look their module up
SPEC.loader.exec_module(make_gallery)
GALLERY = make_gallery.GALLERY
SCRIPTS = sorted(GALLERY.glob("*.py"))
ALONE = [script for script in SCRIPTS if not make_gallery.needs_packages(script.read_text())]
AGAIN = "run tools/make_gallery.py"


def stem_of(script: Path) -> str:
    return script.stem


def test_there_are_twelve_examples():
    assert len(SCRIPTS) >= 12
    assert len(ALONE) >= 4


@pytest.mark.parametrize("script", SCRIPTS, ids=stem_of)
def test_page_is_of_the_script(script):
    source = script.read_text()
    page = script.with_suffix(".md").read_text()
    assert re.findall(r"sha256 (\w+)", page) == [make_gallery.digest_of(source)], AGAIN
    title, cells = make_gallery.cells_of(source)
    codes = re.findall(r"^```\{code-block\} python\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE)
    assert codes == [cell.code for cell in cells if cell.code], AGAIN
    assert page.startswith(f"# {title}\n")
    assert all(cell.text in page for cell in cells)
    assert "```{code-block} text\n" in page  # it prints something
    assert 1 <= int(re.findall(r"The script takes (\d+) s", page)[0]) < make_gallery.LONGEST_RUN


@pytest.mark.parametrize("script", SCRIPTS, ids=stem_of)
def test_pictures(script):
    shown = re.findall(r"^!\[(.*)\]\((.*)\)$", script.with_suffix(".md").read_text(), re.M)
    pictures = make_gallery.pictures_of(script)
    assert [name for _, name in shown] == [path.name for path in pictures] != []
    assert [name for alt, name in shown if not alt] == []
    assert max(path.stat().st_size for path in pictures) <= make_gallery.LARGEST_PICTURE


def test_index_lists_each_page_and_no_file_is_left_over():
    assert (GALLERY / "index.md").read_text() == make_gallery.index_of(SCRIPTS), AGAIN
    known = {GALLERY / "index.md", *SCRIPTS, *(script.with_suffix(".md") for script in SCRIPTS)}
    known |= {picture for script in SCRIPTS for picture in make_gallery.pictures_of(script)}
    assert {path for path in GALLERY.iterdir() if path.is_file()} == known


def test_cells():
    title, cells = make_gallery.cells_of('"""A title\n\nText.\n"""\n\nx = 1\n\n# %%\n# More\n# text.\n\nprint(x)\n')
    assert title == "A title"
    assert [(cell.text, cell.code, cell.line) for cell in cells] == [
        ("Text.", "x = 1", 6),
        ("More\ntext.", "print(x)", 12),
    ]


@pytest.mark.parametrize("script", ALONE, ids=stem_of)
def test_script_runs(script, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": make_gallery.python_path()}
    command = [sys.executable, "-W", "error", str(script), "--quick"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
