"""The model of larger machines: it gives back what it is fitted to, and predicts what follows from the arithmetic."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "distributed_model.py"
spec = importlib.util.spec_from_file_location("distributed_model", PATH)
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)

FACTS = {"call": 1e-5, "byte": 1e-10, "step": 0.09, "bytes": 8e6, "buckets": 4}


def test_lines_are_fitted():
    sizes = [1 << n for n in range(10, 23, 2)]
    call, byte = model.fitted({size: 2e-5 + 3e-10 * size for size in sizes})
    assert call == pytest.approx(2e-5) and byte == pytest.approx(3e-10)


def test_steps():
    own = 4 * 1e-5 + 8e6 * 1e-10
    # Too quick to matter: the last bucket alone is waited for.
    assert model.step_time(FACTS, 2, 1e15, 0.0) == pytest.approx(0.09 + own)
    # So slow that nothing else matters: the link begins when the first bucket is whole, and carries all bytes.
    assert model.step_time(FACTS, 2, 1e6, 0.0) == pytest.approx(0.03 + 0.06 / 4 + 8.0 + own)
    # Halving and doubling: of 1,024 ranks 20 messages, and not 2,046.
    assert model.carried(0, 1024, 1e9, 1e-6) == pytest.approx(20e-6)
    shares = [FACTS["step"] / model.step_time(FACTS, ranks, 0.125e9, 40e-6) for ranks in model.RANKS]
    assert shares == sorted(shares, reverse=True) and 0.2 < shares[-1] < shares[0] < 1


def test_table_and_picture():
    lines = model.table(FACTS).splitlines()
    assert len(lines) == 2 + len(model.NETWORKS) and lines[0].endswith("1,024 |")
    drawn = model.picture(FACTS)
    assert drawn.count("<polyline") == len(model.NETWORKS) and drawn.strip().endswith("</svg>")
