"""The two commands of `python -m torchlite`, and the examples."""

import importlib.util
import sys
from pathlib import Path

import pytest

from torchlite.__main__ import main
from torchlite._cli import demo as _demo
from torchlite._cli import info as _info
from torchlite._dispatch import backend_registry
from torchlite._types.devices import REGISTERED

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def exit_status(words):
    try:
        return main(words)
    except SystemExit as error:
        return error.code


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
    assert main(["demo"]) == 1
    assert f"the demo needs {name}: pip install 'torchlite-nd[demo]'\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["--epochs", "0"], 2, "argument --epochs: 0 is not at least 1"),
        (["--epochs", "many"], 2, "argument --epochs: 'many' is not a whole number"),
        (["--seed", "1.5"], 2, "argument --seed: '1.5' is not a whole number"),
        (["--seed", str(2**64)], 2, "is not in -2**63 ... 2**64 - 1"),
        (["--device", "nosuch"], 2, "there is no device 'nosuch': usable here "),
        (["--device", "mps"], 2, "there is no device 'mps': usable here "),
        (["--device", "cpu:7"], 2, "there is no device 'cpu:7': usable here "),
        (["--device", "meta"], 2, "there is no device 'meta': usable here "),
        (["--output", "/nonexistent/x.png"], 1, "there is no folder /nonexistent"),
        (["--output", "x.txt"], 2, "expected a name that ends in .png"),
    ],
)
def test_demo_checks_its_arguments_before_it_trains(monkeypatch, capsys, words, status, error):
    monkeypatch.setattr(_demo, "load_digits", lambda: pytest.fail("the demo has begun"))
    assert exit_status(["demo", *words]) == status
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and error in err and "xpu" not in err


def test_demo_says_what_an_absent_device_needs(monkeypatch, capsys):
    needs = "device 'opencl' needs PyOpenCL:\npip install it"
    monkeypatch.setattr("torchlite._cli.device_argument.why_not_usable", {"opencl": needs}.get)
    assert main(["demo", "--device", "opencl:0"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("demo: error: --device opencl:0: device 'opencl' needs PyOpenCL: pip install it\n")
    assert err.count("\n") == 1


def test_a_folder_is_no_picture(tmp_path, capsys):
    (tmp_path / "x.png").mkdir()
    assert main(["demo", "--output", str(tmp_path / "x.png")]) == 1
    assert "this is a folder; name a file" in capsys.readouterr().err


def test_few_epochs_are_no_failure(tmp_path, capsys):
    """Somebody who tries one epoch is told why the accuracy is low; the target is that of the default epochs."""
    assert main(["demo", "--device", "cpu", "--epochs", "1", "--output", str(tmp_path / "x.png")]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "% on cpu: fewer than 7 epochs may stay below 97%; run without --epochs" in out


def test_demo_fails_below_the_accuracy(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_demo, "TARGET", 1.01)
    assert main(["demo", "--device", "cpu", "--epochs", "7", "--output", str(tmp_path / "x.png")]) == 1
    err = capsys.readouterr().err
    assert "% on cpu after 7 epochs, below 101%; if another --seed" in err and err.count("\n") == 1


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
