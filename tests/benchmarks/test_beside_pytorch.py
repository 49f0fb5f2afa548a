"""`benchmarks/beside_pytorch.py`: its rows run, and its table says what a row lacks."""

import importlib
import sys
import time
from pathlib import Path

import pytest

import torchlite as torch

ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("data", "products", "quantized", "pooling", "convolutions", "samplers", "packages", "ops")


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    return importlib.import_module("beside_pytorch")


def test_rows_are_chosen_by_group_and_word(benchmark):
    everything = benchmark.rows_of([])
    groups = [benchmark.rows_of([name]) for name in GROUPS]
    assert sum(map(len, groups)) == len(everything) > 400
    assert set(benchmark.rows_of(["data"], "stack 32")) < set(groups[0])


def test_all_rows_compile(benchmark):
    for prepare, statement in benchmark.rows_of([]).values():
        compile(prepare, "row", "exec")
        compile(statement, "row", "exec")


@pytest.mark.parametrize(
    "name",
    ["tensor(10 floats)", "mm 256 int64", "dynamic Linear 1024, 1 rows", "max_pool1d(1e5, k 1000)", "torch.abs(x)"],
)
def test_a_row_is_timed(benchmark, name):
    grad = torch.is_grad_enabled()
    try:
        run = benchmark.compile_row(torch, *benchmark.rows_of([])[name])
        assert 0 <= benchmark.seconds_of(run, 0.0, time.perf_counter) < 10
    finally:
        torch.set_grad_enabled(grad)


def test_lines_of_the_table(benchmark):
    line = benchmark.format_row("row", {"torch": 1e-6, "numpy": 3e-6, "cc": 5e-7}, ["numpy", "cc"], 0)
    assert line.split() == ["row", "1.0us", "3.00", "0.50"]
    assert not benchmark.format_row("row", {"torch": 1e-6, "numpy": 3e-6}, ["numpy"], 4.0)
    assert "TypeError: no" in benchmark.format_row("row", {"torch": 1e-6, "numpy": "TypeError: no"}, ["numpy"], 4.0)
    assert benchmark.format_row("row", {"torch": "ValueError: x", "numpy": 1e-6}, ["numpy"], 0).endswith(
        "ValueError: x"
    )
