"""`benchmarks/cold_start.py`: its programs run, what is absent is named, and the page shows its table."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cold_start(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    return importlib.import_module("cold_start")


def test_programs_of_torchlite(cold_start, monkeypatch, tmp_path, capsys):
    """Each format in one round, and the table in a page. No other library is asked."""
    monkeypatch.setattr(cold_start, "has_module", lambda python, name, environment: name == "torchlite")
    page = tmp_path / "page.md"
    page.write_text("Before\n\n<!-- cold start -->\n\n<!-- end -->\n\nAfter\n")
    names = ["mlp.pt", "mlp.onnx", "mlp.ts"]
    assert cold_start.main(["--rounds", "1", "--only", ",".join(names), "--write-docs", str(page)]) == 0
    out, text = capsys.readouterr().out, page.read_text()
    assert text.startswith("Before\n\n<!-- cold start -->\n\n| model |") and text.endswith("<!-- end -->\n\nAfter\n")
    for name in names:
        title = cold_start.CASES[name][0]
        row = re.search(rf"\| {title} \| (\d+) ms \| (\d+), (\d+), (\d+) \| - \| - \| - \| (\d+) \| (\d+) MB \|", text)
        assert row is not None, text
        total, *parts, modules, memory = map(int, row.groups())
        assert sum(parts) <= total + len(parts) and 300 < modules < 700 and 20 < memory < 200
    assert "left out: MLP, state dict in PyTorch: its interpreter has no torch\n" in out


def test_absent_files_are_named(cold_start, monkeypatch, tmp_path):
    """silero-vad's files are looked for in its package and in the folder of `--silero`; nothing is fetched."""
    find = importlib.util.find_spec
    absent = ("silero_vad", "safetensors")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find(name))
    names = ["silero_vad.onnx", "silero_vad.jit", "minilm.safetensors"]
    found = cold_start.write_files(tmp_path, names, None)
    said = "the package silero-vad is not installed, and --silero names no folder"
    assert found == {names[0]: said, names[1]: said, names[2]: "the package safetensors is not installed"}
    (tmp_path / "silero_vad.onnx").write_bytes(b"")
    found = cold_start.write_files(tmp_path, names[:2], tmp_path)
    assert found == {names[0]: tmp_path / names[0], names[1]: f"{tmp_path} has no file silero_vad.jit"}


def test_an_unknown_case_is_an_error(cold_start, capsys):
    with pytest.raises(SystemExit):
        cold_start.main(["--only", "mlp.pt,mlp.h5"])
    assert "there is no case mlp.h5" in capsys.readouterr().err


def test_results_that_differ_are_told(cold_start):
    measurement = cold_start.Measurement({}, 1, "numpy", {})
    figures = [cold_start.Figures(100, 1, 1, 1, 1, 1, result) for result in (0.5, 0.5001, 0.6)]
    measurement.figures["mlp.pt"] = {"torchlite": figures[0], "torch": figures[1]}
    assert not measurement.disagreements()
    measurement.figures["mlp.pt"]["torch"] = figures[2]
    assert measurement.disagreements() == ["MLP, state dict: the results differ: {'torchlite': 0.5, 'torch': 0.6}"]


def test_the_least_figures_count(cold_start):
    first, second = cold_start.Figures(100, 1, 2, 3, 4, 50, 0), cold_start.Figures(90, 5, 6, 7, 8, 60, 0)
    assert first.least(second) == cold_start.Figures(90, 5, 6, 7, 8, 50, 0)


def test_the_page_has_the_table(cold_start):
    page = (ROOT / "docs" / "performance.md").read_text()
    section = page.partition("<!-- cold start -->")[2].partition("<!-- end -->")[0]
    for title, _, _ in cold_start.CASES.values():
        assert f"| {title} |" in section
