"""`python -m torchlite show op NAME`."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

import pytest

import torchlite_backends
from torchlite.__main__ import main
from torchlite._cli.show import find, generated_sources
from torchlite._dispatch import INPLACE, NAMESPACES, REGISTRY


def shown(capsys, *arguments: str) -> str:
    assert main(["show", "op", *arguments]) == 0
    return capsys.readouterr().out


def test_an_ops_record_its_functions_and_its_devices(capsys):
    said = shown(capsys, "mul")
    lines = said.splitlines()
    assert lines[0] == "mul(Tensor|Number input, Tensor|Number other)"
    facts = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:7]}
    assert facts["declared"].startswith("torchlite/_ops/pointwise.py:")
    assert facts["names"] == "torch.mul, torch.multiply, Tensor.mul, Tensor.multiply"
    assert facts["promotion"] == "to the common dtype" and facts["tags"] == "pointwise, has an in-place method"
    assert facts["derivative"] == "formulas for input, other"
    titles = [line.split()[1] for line in lines if line.startswith("-- ")]
    assert titles == ["mul", "mul_", "backward", "devices"]
    assert "def mul_(self, other):" in lines and any(line.startswith("def mul(input=ABSENT, ") for line in lines)
    cpu, meta = lines[lines.index(next(line for line in lines if line.startswith("-- devices"))) + 1 :][:2]
    assert cpu.split()[:4] == ["cpu", "kernel", "(numpy.ufunc", "multiply);"]
    assert meta.split()[:2] == ["meta", "kernel"]


def test_an_op_in_place(capsys):
    said = shown(capsys, "add_")
    assert "def add_(self, other):" in said and "def add(" not in said and "def backward" not in said
    assert "def add_(self, other):" in shown(capsys, "Tensor.add_")
    assert "def clamp_(self, min=None, max=None):" in shown(capsys, "clamp_")
    assert "No text of its own" in shown(capsys, "addcmul_")


def test_composites_and_several_results(capsys):
    said = shown(capsys, "linalg.inv")
    assert "that of the ops in which it is written" in said and "cpu          composite (_ops/linalg_solve.py:" in said
    assert "results      values, indices" in shown(capsys, "_max_dim")
    assert "for formulas: the function runs the composite" in shown(capsys, "clamp")
    assert "see also     add_alpha, which torch.add is" in shown(capsys, "prims.add")
    assert "promotion    that of the ops in which it is written" in shown(capsys, "add")


@pytest.mark.parametrize(
    ("name", "record", "in_place"),
    [
        ("add", "add_alpha", False),
        ("prims.add", "add", False),
        ("torch.add", "add_alpha", False),
        ("Tensor.add_", "add_alpha", True),
        ("nn.functional.linear", "linear", False),
        ("torchlite.nn.functional.linear", "linear", False),
        ("linalg.inv", "linalg_inv", False),
        ("inv", "linalg_inv", False),
        ("torch.linalg_inv", None, False),
        ("multiply", "mul", False),
        ("maximum_", None, True),
        ("_", None, True),
        ("", None, True),
    ],
)
def test_names(name, record, in_place):
    if record is None:
        with pytest.raises(LookupError, match=f"there is no op '{name}'"):
            find(name)
    else:
        assert find(name) == (REGISTRY[record], in_place)


def test_every_public_name_and_op_can_be_shown():
    for space, names in NAMESPACES.items():
        for name, op in names.items():
            assert find(f"{space}.{name}") == (op, False)
    for op in REGISTRY.values():
        texts = generated_sources(op)
        assert texts[op.name].startswith("def ") and ("backward" in texts) == bool(op.formulas)
        assert any(title.endswith("_") for title in texts if title != op.name) == bool(op.tags & INPLACE)


def test_an_unknown_name_is_an_error_with_near_ones(capsys):
    assert main(["show", "op", "matmull"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "show: error: there is no op 'matmull': did you mean matmul or " in said.err
    assert main(["show", "op", "12345678"]) == 2
    assert capsys.readouterr().err.endswith("error: there is no op '12345678'\n")
    assert main(["show", "matmul"]) == 2
    assert "there is no file 'matmul'; `python -m torchlite show op matmul`" in capsys.readouterr().err


def test_other_devices(capsys, monkeypatch):
    def why_not(op, name):
        return f"cannot be used: {name} is absent"

    monkeypatch.setattr("torchlite._cli.show.execution_kind_on_device", why_not)
    said = shown(capsys, "exp", "--device", "cpu", "--device", "cuda")
    assert said.count("  cpu  ") == 1 and "cuda         cannot be used: cuda is absent" in said
    assert main(["show", "op", "exp", "--device", "nonsense"]) == 2
    assert "there is no device 'nonsense': usable here " in capsys.readouterr().err


def test_json(capsys):
    found = json.loads(shown(capsys, "mul", "--json"))
    assert list(found) == [
        "name", "schema", "declared", "names", "promotion", "tags", "derivative", "results", "see_also", "sources",
        "devices",
    ]  # fmt: skip
    assert found["name"] == "mul" and "torch.multiply" in found["names"] and "pointwise" in found["tags"]
    assert list(found["sources"]) == ["mul", "mul_", "backward"] and found["devices"]["meta"].startswith("kernel")
    assert list(json.loads(shown(capsys, "--json", "add_"))["sources"]) == ["add_"]


def test_missing_kernels_are_absent(capsys):
    from torchlite._dispatch.backend_registry import table_of
    from torchlite._dispatch.fallback import MissingKernel
    from torchlite._types.devices import device

    absent = next(
        op for op in REGISTRY.values() if isinstance(getattr(table_of(device("meta")), op.name), MissingKernel)
    )
    assert ["meta", "absent"] in [line.split() for line in shown(capsys, absent.name).splitlines()]


def test_kernels_of_devices_are_found_without_their_drivers():
    code = (
        "import sys; sys.modules['cupy'] = sys.modules['pyopencl'] = None\n"
        "from torchlite.__main__ import main\n"
        "for name in ('mul', 'cumsum', 'arange', '_sdpa', 'linear', '_grid_sample'): main(['show', 'op', name])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith(("  opencl  ", "  cuda  "))]
    mul, cumsum, arange, attention, linear, sampled = zip(rows[::2], rows[1::2], strict=True)
    for on_device in mul:
        assert "kernel (device_runtime/array_ops/pointwise.py:" in on_device and "; in place: " in on_device
        assert "kernel_sources/pointwise_rules.py" in on_device
    for on_device in cumsum:
        assert on_device.startswith("kernel (device_runtime/array_ops/scan.py:")
        assert "kernel_sources/scan.py" in on_device
    assert all(on_device.startswith("composite (_ops/creation_ranges.py:") for on_device in arange)
    assert attention[1].startswith("kernel (device_runtime/nn/attention.py:")
    assert attention[0].startswith("kernel (cupy/cudnn_attention.py:") and "else device_runtime/nn/" in attention[0]
    assert all("device_runtime/linalg/matmul.py:" in on_device for on_device in linear)
    assert all(on_device.startswith("composite (_ops/resample.py:") for on_device in sampled)


def test_the_kernels_that_show_names_are_in_the_tables():
    """Of each kernel of a device the place, with the right line."""
    from torchlite_backends.device_runtime.backend import kernels_of
    from torchlite_backends.device_runtime.kernel_locations import kernel_location

    kernels = kernels_of(None)
    for name in kernels:
        path, line = re.match(r"(.+\.py):(\d+)", kernel_location(kernels, name)).groups()
        text = (pathlib.Path(torchlite_backends.__path__[0]) / path).read_text().splitlines()[int(line) - 1]
        assert text.lstrip().startswith(("def ", "@", "lambda")) or "lambda" in text, (name, path, text)
