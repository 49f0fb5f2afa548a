"""TorchScript both ways: PyTorch reads what torchlite traced and scripted; torchlite reads what PyTorch did."""

import io

import pytest

import torchlite

from ..graph_models import MODELS
from ..jit.record import leaves, saved

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def written(module):
    out = io.BytesIO()
    torchlite.jit.save(module, out)
    return io.BytesIO(out.getvalue())


def same(found, wanted):
    assert len(leaves(found)) == len(leaves(wanted))
    for a, b in zip(leaves(found), leaves(wanted), strict=True):
        torch.testing.assert_close(
            torch.tensor(a.detach().tolist(), dtype=torch.float64),
            torch.tensor(b.detach().tolist(), dtype=torch.float64), rtol=1e-5, atol=1e-5,
        )  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", ["trace", "script", "freeze", "freeze a trace"])
def test_pytorch_reads(name, how):
    one = MODELS[name]
    if how in ("script", "freeze") and not one.scripts:
        pytest.skip("PyTorch does not script it")
    ours = one.make(torchlite)
    made = (
        torchlite.jit.script(ours)
        if how in ("script", "freeze")
        else torchlite.jit.trace(ours, one.inputs(torchlite), check_trace=False)
    )
    if how.startswith("freeze"):
        made = torchlite.jit.freeze(made)
        assert not list(made.parameters())
    with torch.no_grad():
        same(torch.jit.load(written(made))(*one.inputs(torch)), ours(*one.inputs(torchlite)))


@pytest.mark.parametrize("name", [name for name, one in MODELS.items() if one.scripts])
@pytest.mark.parametrize("how", ["trace", "script", "freeze"])
@pytest.mark.parametrize("train", [False, True])
def test_torchlite_reads(name, how, train):
    one = MODELS[name]
    if how == "freeze" and train:
        pytest.skip("modules in training are not frozen")
    theirs = one.make(torch, train)
    made = torch.jit.trace(theirs, one.inputs(torch), check_trace=False) if how == "trace" else torch.jit.script(theirs)
    made = torch.jit.freeze(made) if how == "freeze" else made
    loaded = torchlite.jit.load(io.BytesIO(saved(torch, made)))
    if any(isinstance(m, torch.nn.modules.dropout._DropoutNd) for m in theirs.modules()) and train:
        loaded(*one.inputs(torchlite))
        return
    with torch.no_grad():
        same(loaded(*one.inputs(torchlite)), made(*one.inputs(torch)))
