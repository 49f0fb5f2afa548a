"""Damaged and hostile programs: a sample of `tests.hostile.programs`, and the forms that must not run."""

import subprocess
import sys

import pytest

import torchlite as torch

from ..hostile import programs


def test_a_sample_of_damaged_and_hostile_programs():
    code = (
        "import sys; from tests.hostile import programs as p; sys.addaudithook(p._watch); print(p.check(range(0, 96)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("form", programs._EXPRESSIONS)
def test_no_other_form_gives_a_value(form, tmp_path):
    text = f"{programs._CLASS}  def forward(self, x: Tensor) -> Tensor:\n    y = {form}\n    return y\n"
    try:
        found = torch.jit.load(_file(text, tmp_path))(torch.ones(2))
    except programs._ALLOWED:
        return
    assert isinstance(found, (torch.Tensor, int, float, str, list, bool, type(None)))


def _file(text, folder):
    path = folder / "program.pt"
    path.write_bytes(programs.program(text))
    return str(path)


@pytest.mark.parametrize(
    "form", ["x.__class__", "self.__dict__", "().__class__", "__builtins__", 'eval("1")', "CONSTANTS.c0"]
)
def test_refused_forms_name_their_place(form, tmp_path):
    text = f"{programs._CLASS}  def forward(self, x: Tensor) -> Tensor:\n    y = {form}\n    return x\n"
    with pytest.raises(RuntimeError, match="TorchScript|undefined value|no constant|has no attribute"):
        torch.jit.load(_file(text, tmp_path))(torch.ones(2))
