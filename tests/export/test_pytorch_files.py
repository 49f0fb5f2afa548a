"""Files of PyTorch run here, and are written and read again."""

import io

import pytest

import torchlite as torch
from tests.graph_models import MODELS

from . import pytorch_files

STEMS = sorted(name[:-4] for name in pytorch_files.files() if name.endswith(".pt2"))


def _run(program, stem, device):
    name, _, sizes, *_ = stem.split("-")
    batch = 5 if sizes == "dynamic" else 2
    module = pytorch_files.moved(program, device).module()
    return module(*(x.to(device) for x in MODELS[name].inputs(torch, batch))), batch


@pytest.mark.parametrize("stem", STEMS)
def test_a_file_of_pytorch_gives_its_results(stem, device):
    program = torch.export.load(io.BytesIO(pytorch_files.files()[f"{stem}.pt2"]))
    found, batch = _run(program, stem, device)
    name, mode, *_ = stem.split("-")
    pytorch_files.check(found, pytorch_files.results(f"{name}-{mode}-{batch}"), 1e-5 if str(device) == "cpu" else 1e-4)


@pytest.mark.parametrize("stem", STEMS[::7])
def test_a_file_is_written_and_read_again(stem):
    program = torch.export.load(io.BytesIO(pytorch_files.files()[f"{stem}.pt2"]))
    held = io.BytesIO()
    torch.export.save(program, held, extra_files={"note.txt": "hello"})
    held.seek(0)
    extra = {"note.txt": ""}
    again = torch.export.load(held, extra_files=extra)
    assert extra == {"note.txt": "hello"}
    assert str(again) == str(program)
    found, batch = _run(again, stem, "cpu")
    name, mode, *_ = stem.split("-")
    pytorch_files.check(found, pytorch_files.results(f"{name}-{mode}-{batch}"), 1e-5)


def test_a_loaded_module_has_its_parameters_and_trains():
    program = torch.export.load(io.BytesIO(pytorch_files.files()["gpt-train-static.pt2"]))
    module = program.module()
    names = [name for name, _ in module.named_parameters()]
    assert "tokens.weight" in names and module.tokens.weight is module.head.weight  # tied
    before = module.head.weight.detach().clone()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(*MODELS["gpt"].inputs(torch)).sum().backward()
    optimizer.step()
    assert not torch.equal(module.head.weight, before)


def test_buffers_are_written_back():
    for kind in ("", "-decomposed"):
        program = torch.export.load(io.BytesIO(pytorch_files.files()[f"resnet-train-static{kind}.pt2"]))
        module = program.module()
        model = MODELS["resnet"].make(torch, train=True)
        x = MODELS["resnet"].inputs(torch)
        module(*x), model(*x)
        for name, buffer in model.named_buffers():
            torch.testing.assert_close(module.state_dict()[name], buffer, rtol=1e-5, atol=1e-6)


def test_a_size_outside_of_the_range_is_refused():
    program = torch.export.load(io.BytesIO(pytorch_files.files()["mlp-eval-dynamic.pt2"]))
    module = program.module()
    with pytest.raises(AssertionError, match=r"Guard failed: input.size\(\)\[1\] == 8"):
        module(torch.ones(3, 7))
    with pytest.raises(AssertionError, match=r"Guard failed: input.size\(\)\[0\] <= 64"):
        module(torch.ones(65, 8))
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        module(torch.ones(3, 8), torch.ones(3, 8))
    assert program.module(check_guards=False)(torch.ones(65, 8)).shape == (65, 3)
