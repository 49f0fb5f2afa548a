"""The two commands of `python -m torchlite`, and the examples."""

import importlib.util
import sys
from pathlib import Path

import pytest

from torchlite.__main__ import main
from torchlite._cli import info as _info

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_demo(tmp_path, capsys, device):
    """The main job on real data: at least 97%, a table, a picture."""
    picture = tmp_path / "picture.png"
    assert main(["demo", "--device", device, "--output", str(picture)]) == 0
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith(device) and line.endswith("%"))
    assert float(row.split()[-1].rstrip("%")) >= 97 and "device" in said and "epoch 7/7" in said
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000


@pytest.mark.parametrize(("module", "name"), [("matplotlib", "matplotlib"), ("sklearn", "scikit-learn")])
def test_demo_names_missing_packages(monkeypatch, capsys, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo"]) == 2
    assert f'The demo needs {name}:  pip install "torchlite-nd[demo]"' in capsys.readouterr().err


def test_demo_reports_low_accuracy(tmp_path, capsys):
    assert main(["demo", "--device", "cpu", "--epochs", "1", "--output", str(tmp_path / "x.png")]) == 1
    assert "below 97% on cpu" in capsys.readouterr().err


def test_info(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    for word in ("versions", "devices", "threads", "cache folders", "torchlite", "numpy", "BLAS"):
        assert word in said
    lines = {line.split()[0]: line for line in said.splitlines() if line.startswith("  ")}
    assert "ready" in lines["cpu"]
    for name in ("cuda", "opencl"):
        found = lines.get(name) or lines[f"{name}:0"]
        assert "ready" in found or "pip install" in found


def test_info_survives_a_broken_backend(monkeypatch):
    from torchlite._dispatch import backend_registry
    from torchlite._types.devices import REGISTERED

    class Broken:
        def why_not(self):
            raise OSError("the driver fell over")

    monkeypatch.setitem(REGISTERED, "cuda", Broken())
    backend_registry._tables.pop("cuda", None)
    assert "the driver fell over" in _info.find_devices()["cuda"] and "an NVIDIA driver" in _info.find_devices()["cuda"]
    assert "cpu" in _info.usable_devices() and not any(name.startswith("cuda") for name in _info.usable_devices())


@pytest.mark.parametrize(
    ("name", "arguments", "good"),
    [
        ("transformer_classifier", ["--epochs", "2", "--rows", "600"], lambda accuracy: accuracy > 0.85),
        ("digits_cnn", ["--epochs", "2"], lambda accuracy: accuracy > 0.85),
        ("char_gpt", ["--steps", "60"], lambda loss: loss < 2.6),
    ],
)
def test_examples(name, arguments, good, device):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert good(module.main(["--device", device, *arguments]))
