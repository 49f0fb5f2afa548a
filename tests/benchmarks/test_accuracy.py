"""`benchmarks/accuracy.py`: its errors are those of rounding, and the page shows its table."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def accuracy(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    return importlib.import_module("accuracy")


def test_errors_are_those_of_rounding(accuracy):
    found = accuracy.measure("torchlite", "cpu", accuracy.OPS, [1, 4])
    assert list(found) == accuracy.OPS
    assert all(0 < error < 5e-7 for errors in found.values() for error in errors.values())
    lines = accuracy.table({"NumPy": found}).splitlines()
    assert lines[0] == "| op | engine | 1e1 | 1e4 |" and len(lines) == 2 + len(accuracy.OPS)


def test_the_page_has_all_ops_and_engines(accuracy):
    lines = (ROOT / "docs" / "explanation" / "accuracy.md").read_text().splitlines()
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines if line.startswith("| ")}
    assert {(op, engine) for op in accuracy.OPS for engine in accuracy.ENGINES} <= rows
