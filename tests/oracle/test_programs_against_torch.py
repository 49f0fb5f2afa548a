"""The same programs, unchanged but for the import, in PyTorch and in torchlite; checkpoints in both directions."""

import io

import numpy as np
import pytest
import torch

import torchlite
from tests.programs import seed_program, seeded_runs
from tests.programs.import_variant import twin

pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["lenet", "mlp", "transformer"])
def test_fifty_steps_have_the_same_loss(name):
    theirs = getattr(twin("seeded_runs", torch), name)()
    assert getattr(seeded_runs, name)() == pytest.approx(theirs, abs=1e-4)


def test_seed_program_on_both_libraries(tmp_path):
    program = twin("seed_program", torch)
    ours, our_losses = seed_program.train(tmp_path / "ours.pt")
    theirs, their_losses = program.train(tmp_path / "theirs.pt")
    assert our_losses == pytest.approx(their_losses, abs=1e-3)
    tokens = np.random.default_rng(0).integers(0, 20, (16, 12))
    with torch.no_grad(), torchlite.no_grad():
        reader = program.Classifier().eval()
        reader.load_state_dict(torch.load(tmp_path / "ours.pt"))
        assert np.abs(reader(torch.tensor(tokens)).numpy() - ours(torchlite.tensor(tokens)).numpy()).max() < 1e-5
        reader = seed_program.Classifier().eval()
        reader.load_state_dict(torchlite.load(tmp_path / "theirs.pt"))
        assert np.abs(reader(torchlite.tensor(tokens)).numpy() - theirs(torch.tensor(tokens)).numpy()).max() < 1e-5


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizer_state_between_both_libraries(name):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}

    def make(t, steps):
        t.manual_seed(0)
        model = t.nn.Linear(3, 2)
        optimizer = getattr(t.optim, name)(model.parameters(), lr=0.05, **options)
        run(t, model, optimizer, steps)
        return model, optimizer

    def run(t, model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(t.ones(4, 3)).square().sum().backward()
            optimizer.step()

    for writer, reader in ((torch, torchlite), (torchlite, torch)):
        model, optimizer = make(writer, 3)
        file = io.BytesIO()
        writer.save([model.state_dict(), optimizer.state_dict()], file)
        file.seek(0)
        weights, state = reader.load(file)
        again, again_optimizer = make(reader, 0)
        again.load_state_dict(weights)
        again_optimizer.load_state_dict(state)
        run(reader, again, again_optimizer, 2)
        run(writer, model, optimizer, 2)
        for a, b in zip(again.parameters(), model.parameters(), strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
