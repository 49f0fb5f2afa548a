"""Damaged and hostile programs: a sample of `tests.hostile.torchscript_archives`, and the forms that must not run."""

import io
import subprocess
import sys

import pytest

import torchlite as torch

from . import torchscript_archives


def test_a_sample_of_damaged_and_hostile_programs():
    code = (
        "import sys; from tests.hostile import torchscript_archives as p; sys.addaudithook(p._watch); "
        "print(p.check(range(0, 96)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("form", torchscript_archives._EXPRESSIONS)
def test_no_other_form_gives_a_value(form, tmp_path):
    text = f"{torchscript_archives._CLASS}  def forward(self, x: Tensor) -> Tensor:\n    y = {form}\n    return y\n"
    try:
        found = torch.jit.load(_file(text, tmp_path))(torch.ones(2))
    except torchscript_archives._ALLOWED:
        return
    assert isinstance(found, (torch.Tensor, int, float, str, list, bool, type(None)))


def _file(text, folder):
    path = folder / "program.pt"
    path.write_bytes(torchscript_archives.program(text))
    return str(path)


@pytest.mark.parametrize(
    "form", ["x.__class__", "self.__dict__", "().__class__", "__builtins__", 'eval("1")', "CONSTANTS.c0"]
)
def test_refused_forms_name_their_place(form, tmp_path):
    text = f"{torchscript_archives._CLASS}  def forward(self, x: Tensor) -> Tensor:\n    y = {form}\n    return x\n"
    with pytest.raises(RuntimeError, match="TorchScript|undefined value|no constant|has no attribute"):
        torch.jit.load(_file(text, tmp_path))(torch.ones(2))


def _of(*parts: str | bytes) -> io.BytesIO:
    return io.BytesIO(torchscript_archives.holding(*parts))


# -- the values of a program's pickles -----------------------------------------------------------------


@pytest.mark.parametrize("place", torchscript_archives.PLACES)
@pytest.mark.parametrize("name", torchscript_archives.GLOBALS)
def test_globals_named_by_a_pickle_are_refused_as_values(name, place):
    value = torchscript_archives.PLACES[place] % name
    with pytest.raises(RuntimeError, match=r"is no value of TorchScript \(in the record data.pkl\)"):
        torch.jit.load(_of(value))
    with pytest.raises(RuntimeError, match=r"is no value of TorchScript \(in the record constants.pkl\)"):
        torch.jit.load(_of(b"N", "self.a", b"\x80\2" + value + b"\x85."))


@pytest.mark.parametrize("place", torchscript_archives.PLACES)
def test_values_of_the_language_load_in_the_same_places(place):
    for value in (
        b"K\5",
        b"G?\xf8\0\0\0\0\0\0",
        b"\x88",
        b"N",
        b"X\1\0\0\0t",
        b"c__torch__\nE\n(K\1tR",
        b"ctorch\ndevice\n(X\3\0\0\0cputR",
    ):
        if place != "the state of an object" or value != b"N":
            torch.jit.load(_of(torchscript_archives.PLACES[place] % value))(torch.ones(1))


class Allowed:
    """A class that a user allows for checkpoints."""


def test_programs_name_no_class_that_users_allow_for_checkpoints():
    path = f"{Allowed.__module__}\n{Allowed.__qualname__}\n".encode()
    with torch.serialization.safe_globals([Allowed]):
        for value in (b"c" + path, b"c" + path + b")R", b"c" + path + b")\x81"):
            with pytest.raises(RuntimeError, match="Unsupported global"):
                torch.jit.load(_of(value))


@pytest.mark.parametrize("method", ["float", "int", "bool", "cpu", "cuda", "double"])
def test_casts_are_of_tensors(method):
    for value in (b"c__torch__\nNT\n(K\1t\x81", b"K\1", b"X\1\0\0\0a", b"]", b"c__torch__\nC\n)\x81}b"):
        with pytest.raises(RuntimeError, match="has no (method|attribute) '" + method):
            torch.jit.load(_of(value, f"(self.a).{method}()"))(torch.ones(1))


def test_one_budget_pays_for_both_pickles():
    """A list of 20,000 numbers, checked 44 times: once more than half of what the file has."""
    part = b"\x80\2](" + b"K\1" * 20_000 + b"eq\x630" + b"".join(
        b"ctorch.jit._pickle\nbuild_intlist\n(h\x63tR0" for _ in range(44)
    )  # fmt: skip
    module = b"c__torch__\nM\n)\x81}(X\x08\0\0\0training\x89ub."
    text = torchscript_archives.CLASSES % "x"
    torch.jit.load(io.BytesIO(torchscript_archives.program(text, part + module)))
    torch.jit.load(io.BytesIO(torchscript_archives.program(text, None, part + b").")))
    with pytest.raises(RuntimeError, match="more work or memory"):
        torch.jit.load(io.BytesIO(torchscript_archives.program(text, part + module, part + b").")))
