"""`python -m torchlite show op NAME`."""

from __future__ import annotations

import pytest

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
    assert lines[-2].split()[:4] == ["cpu", "kernel", "(numpy.ufunc", "multiply);"]
    assert lines[-1].split()[:2] == ["meta", "kernel"]


def test_an_op_in_place(capsys):
    said = shown(capsys, "add_")
    assert "def add_(self, other):" in said and "def add(" not in said and "def backward" not in said
    assert "def add_(self, other):" in shown(capsys, "Tensor.add_")
    assert "No text of its own" in shown(capsys, "clamp_")


def test_composites_and_several_results(capsys):
    said = shown(capsys, "linalg.inv")
    assert "that of the ops in which it is written" in said and "cpu          composite (_ops/linalg_solve.py:" in said
    assert "results      values, indices" in shown(capsys, "_max_dim")
    assert "for formulas: the function runs the composite" in shown(capsys, "clamp")
    assert "see also     _add, which torch.add is" in shown(capsys, "add")


@pytest.mark.parametrize(
    ("name", "record", "in_place"),
    [
        ("add", "add", False),
        ("torch.add", "_add", False),
        ("Tensor.add_", "_add", True),
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
    assert said.out == "" and said.err.startswith("there is no op 'matmull': did you mean matmul or ")
    assert main(["show", "op", "12345678"]) == 2
    assert capsys.readouterr().err == "there is no op '12345678'\n"


def test_other_devices(capsys, monkeypatch):
    said = shown(capsys, "exp", "--device", "cpu", "--device", "nonsense")
    assert said.count("  cpu  ") == 1 and "nonsense     cannot be used: " in said


def test_missing_kernels_are_absent(capsys):
    from torchlite._dispatch.backend_registry import table_of
    from torchlite._dispatch.fallback import MissingKernel
    from torchlite._types.devices import device

    absent = next(
        op for op in REGISTRY.values() if isinstance(getattr(table_of(device("meta")), op.name), MissingKernel)
    )
    assert shown(capsys, absent.name).splitlines()[-1].split() == ["meta", "absent"]
