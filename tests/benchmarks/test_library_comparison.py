"""`benchmarks/library_comparison.py`: its workloads run, and the pages and README show the committed report."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORT = json.loads((ROOT / "benchmarks" / "library_comparison.json").read_text())


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    return importlib.import_module("library_comparison")


def test_the_page_and_the_picture_show_the_report(comparison, tmp_path):
    page = ROOT / "docs" / "explanation" / "comparison.md"
    copy = tmp_path / page.name
    copy.write_text(page.read_text())
    comparison.fill_page(copy, comparison.to_markdown(REPORT))
    assert copy.read_text() == page.read_text() and "<!-- comparison table -->\n\n|" in page.read_text()
    chart = importlib.import_module("library_chart")
    assert chart.draw(REPORT) == (ROOT / "docs" / "comparison.svg").read_text()


def test_figures_of_readme():
    """The ratios are those of docs/performance.md, the sizes those of the report."""
    text = (ROOT / "README.md").read_text()
    performance = (ROOT / "docs" / "performance.md").read_text()
    rows = {
        "import": r"\| import \| ([\d.]+)",
        "ops on 4x4 tensors": r"Single ops on 4x4 tensors \| ([\d.]+)",
        "networks of a few small layers": r"Networks of a few small layers \| ([\d.]+)",
        "peak memory": r"\| peak_memory \| ([\d.]+)",
        "ResNet-18 training": r"resnet18_cifar.train .*\| ([\d.]+) \| [\d.]+ \|",
        "text generation by a small GPT": r"gpt.generate .*\| ([\d.]+) \| [\d.]+ \|",
        "vision transformer, one image": r"vit.infer_b1 .*\| ([\d.]+) \| [\d.]+ \|",
        "`gelu` of a 4096 x 1024 tensor": r"big.gelu .*\| ([\d.]+) \| [\d.]+ \|",
    }
    for name, pattern in rows.items():
        found = re.search(pattern, performance)
        assert found is not None and f"| {name} | {found[1]} |" in text, name
    ours, theirs = REPORT["rows"]["torchlite"], REPORT["rows"]["torch"]
    assert f"installed size, with NumPy | {ours['installed'] / theirs['installed']:.2f} |" in text
    assert f"| the library | {ours['alone']:.0f} | {theirs['alone']:.0f} |" in text


@pytest.mark.parametrize(
    ("row", "value", "text"),
    [
        ("installed", 110.6, "111 MB"),
        ("op", 9.04e-7, "0.904 us"),
        ("op", 1.7e-3, "1.7 ms"),
        ("import", 0.276, "276 ms"),
        ("import", 2.346, "2.35 s"),
        ("training", None, "-"),
    ],
)
def test_cells(comparison, row, value, text):
    assert comparison.format_cell(row, value) == text


def test_a_library_that_is_absent_is_named(comparison, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "has_module", lambda python, library, environment: library == "torchlite")
    monkeypatch.setattr(comparison.shutil, "which", lambda name: None)
    measurement = comparison.Measurement({}, 1, 0.01, str(tmp_path))
    assert list(measurement.contestants) == ["torchlite"]
    out = capsys.readouterr().out
    for said in (f"jax: absent from {sys.executable}; left out", "torchlite cc: no C++ compiler; left out"):
        assert said in out


def test_workloads_of_torchlite(comparison, tmp_path):
    environment = comparison.environment_of(sys.executable, "numpy", 1)
    script = ROOT / "benchmarks" / "library_workloads.py"
    words = [sys.executable, str(script), "torchlite", str(tmp_path), "1", "0.01"]
    run = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(run.stdout)
    assert set(found) == {"op", "product", "gelu", "training", "prediction"} and all(v > 0 for v in found.values())
    start = [sys.executable, "-c", comparison.COLD_STARTS["torchlite"]]
    assert subprocess.run(start, capture_output=True, text=True, check=True, env=environment).stdout.strip().isdigit()
