"""Programs that are exported here, read and run by PyTorch."""

import io

import pytest

import torchlite
from tests.export.pytorch_files import leaves
from tests.graph_models import MODELS

torch = pytest.importorskip("torch")
# PyTorch warns of itself: its copies of pytree specs go through a class that it deprecates.
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.mark.parametrize("kind", ["static", "dynamic", "decomposed"])
@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", list(MODELS))
def test_pytorch_runs_our_file(name, train, kind):
    model = MODELS[name]
    shapes = model.dynamic(torchlite) if kind != "static" else None
    program = torchlite.export.export(model.make(torchlite, train), model.inputs(torchlite), dynamic_shapes=shapes)
    held = io.BytesIO()
    torchlite.export.save(program.run_decompositions() if kind == "decomposed" else program, held)
    held.seek(0)
    inputs = model.inputs(torch, 2 if shapes is None else 5)
    loaded = torch.export.load(held)
    with torch.no_grad():
        found = leaves(loaded.module()(*inputs))
        expected = leaves(model.make(torch, train)(*inputs))
    for ours, theirs in zip(found, expected, strict=True):
        largest = max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * largest)
    if kind != "decomposed":
        loaded.run_decompositions()
