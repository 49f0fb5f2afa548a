"""`torch.jit.load` of what PyTorch wrote, and `save` of it again, without PyTorch."""

import ast
import copy
import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch

from ..graph_models import MODELS
from . import samples
from .record import leaves

ARCHIVE = zipfile.ZipFile(pathlib.Path(__file__).with_name("pytorch_archives.zip"))
NAMES = [name[:-3] for name in ARCHIVE.namelist() if name.endswith(".pt")]
PROGRAMS = [name for name in NAMES if not name.startswith("sample.")]
SAMPLES = [name.partition(".")[2] for name in NAMES if name.startswith("sample.")]


def loaded(name, **options):
    return torch.jit.load(io.BytesIO(ARCHIVE.read(f"{name}.pt")), **options)


def again(module, **options):
    out = io.BytesIO()
    torch.jit.save(module, out)
    return torch.jit.load(io.BytesIO(out.getvalue()), **options)


def check(module, name, device, tolerance):
    inputs = [x.to(device) for x in MODELS[name.partition(".")[0]].inputs(torch)]
    with np.load(io.BytesIO(ARCHIVE.read(f"{name}.npz"))) as wanted, torch.no_grad():
        found = leaves(module(*inputs))
        assert len(found) == len(wanted.files)
        for one, key in zip(found, wanted.files, strict=True):
            np.testing.assert_allclose(one.cpu().numpy(), wanted[key], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_pytorch(device, name):
    module = loaded(name, map_location=device)
    check(module, name, device, 1e-5 if str(device) == "cpu" else 1e-4)


@pytest.mark.parametrize("name", PROGRAMS[::4])
def test_a_module_moves_copies_and_is_saved_again(device, name):
    module = loaded(name)
    tolerance = 1e-5 if str(device) == "cpu" else 1e-4
    check(module.to(device), name, device, tolerance)
    check(copy.deepcopy(module), name, device, tolerance)
    second = again(module, map_location="cpu")
    check(second, name, "cpu", 1e-5)
    assert list(second.state_dict()) == list(module.state_dict())
    assert [n for n, _ in second.named_modules()] == [n for n, _ in module.named_modules()]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not loaded(name).training])
def test_frozen_samples_match(name):
    """Programs of PyTorch use one name for several things, and call functions of its library."""
    made = torch.jit.freeze(loaded(name))
    assert not made.state_dict()
    check(made, name, "cpu", 1e-5)
    check(again(made), name, "cpu", 1e-5)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_language(name):
    wanted = ast.literal_eval(ARCHIVE.read(f"sample.{name}.txt").decode())
    x = torch.arange(12.0).view(3, 4)
    module = loaded(f"sample.{name}")
    assert samples.plain(module(x)) == wanted
    assert samples.plain(again(module)(x)) == wanted


def test_loaded_module_attributes():
    module = loaded("sample.contexts")
    assert isinstance(module, torch.jit.ScriptModule) and isinstance(module, torch.nn.Module)
    assert module.original_name == "SampleContexts" and "def forward" in module.code and "graph(" in str(module.graph)
    assert (
        module.other(5) == "n=5" and "def other" in module.other.code and str(module.other.schema).startswith("other(")
    )
    with pytest.raises(torch.jit.Error, match="ValueError: too big"):
        module.other(2000)
    assert module.training and not module.eval().training
    assert "original_name=SampleContexts" in repr(module) and [n for n, _ in module.named_buffers()] == ["count"]
    assert "aten::add" in torch.jit.export_opnames(module)
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        module()
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        module(3)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'y'"):
        module(torch.ones(2), y=1)


def test_weights_train():
    module = loaded(next(name for name in NAMES if name.startswith("lenet."))).train()
    inputs = MODELS["lenet"].inputs(torch)
    optimizer = torch.optim.SGD(module.parameters(), 1e-6)
    first = module(*inputs).square().sum()
    first.backward()
    optimizer.step()
    assert module(*inputs).square().sum() < first


def test_extra_files_and_wrong_ones(tmp_path):
    module = loaded("sample.loops")
    path = str(tmp_path / "module.pt")
    torch.jit.save(module, path, _extra_files={"note.txt": "kept", "raw": b"\xff\x00"})
    found = {"note.txt": "", "raw": "", "absent": "as it was"}
    torch.jit.load(path, _extra_files=found)
    assert found == {"note.txt": b"kept", "raw": b"\xff\x00", "absent": b""}
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load(path + "x")
    with pytest.raises(ValueError, match="map_location should be"):
        torch.jit.load(path, map_location=3.5)
    with pytest.raises(RuntimeError, match="finding central directory"):
        torch.jit.load(io.BytesIO(b"PK\3\4 no archive"))
    with pytest.raises(AttributeError, match="no attribute 'save'"):
        torch.jit.save(torch.nn.Linear(1, 1), path)
    module.save(path)
    assert torch.jit.load(path)(torch.ones(2, 2))[1] == loaded("sample.loops")(torch.ones(2, 2))[1]


def test_a_program_s_named_tuple_is_one_to_pytree():
    from torchlite.jit._runtime import make_namedtuple_class
    from torchlite.utils import _pytree

    cls = make_namedtuple_class("__torch__.Pair", {"left": "Tensor", "right": "Optional[int]"}, (None,))
    pair = cls(torch.ones(2))
    assert _pytree.tree_map(lambda value: 7, pair) == cls(7, 7)
    assert pair._replace(right=3).right == 3 and cls._make([1, 2])._asdict() == {"left": 1, "right": 2}


def test_a_method_s_parameters_by_name(tmp_path):
    import inspect

    class Net(torch.nn.Module):
        def forward(self, image: torch.Tensor, scale: float = 2.0, mask: torch.Tensor | None = None):
            return image * scale

    torch.jit.script(Net()).save(tmp_path / "net.pt")
    forward = torch.jit.load(tmp_path / "net.pt").forward
    assert str(inspect.signature(forward)) == "(image, scale=2.0, mask=None)"
    assert [argument.name for argument in forward.schema.arguments] == ["self", "image", "scale", "mask"]


def test_modules_may_be_shared_but_not_nested_in_themselves():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(2, 2)
            self.second = self.first

        def forward(self, x):
            return self.second(self.first(x))

    module, file = Shared(), io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert torch.equal(loaded(torch.ones(2)), module(torch.ones(2)))


def _saved_and_loaded(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


class ScaledByConstant(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * torch.tensor([self.factor, 2.0, 3.0])


class SumOfPrograms(torch.nn.Module):
    def __init__(self, inner, other):
        super().__init__()
        self.inner, self.other = inner, other

    def forward(self, x):
        return self.inner(x) + self.other(x)


def test_programs_out_of_files_are_written_with_their_constants():
    x = torch.ones(3)
    parts = [_saved_and_loaded(torch.jit.trace(ScaledByConstant(k), x)) for k in (1.0, 10.0)]
    whole = torch.jit.script(SumOfPrograms(*parts))
    assert _saved_and_loaded(whole)(x).tolist() == whole(x).tolist() == [11.0, 4.0, 6.0]
