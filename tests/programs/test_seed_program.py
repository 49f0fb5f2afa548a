"""Whole programs: what they reach here, and that it is what PyTorch reached (recorded by tools/record_programs.py;
tests/oracle compares live).
"""

import json
import threading
from pathlib import Path

import pytest

import torchlite as torch

from . import seed_program, seeded_runs

DATA = Path(__file__).parent
RECORDED = json.loads((DATA / "losses.json").read_text())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("seed") / "model.pt"
    model, losses = seed_program.train(path)
    return model, losses, path


def test_the_loss_falls_as_pytorchs_does(trained):
    _, losses, _ = trained
    assert losses[0] > losses[1] > losses[2] and losses[2] < 0.5 * losses[0]
    assert losses == pytest.approx(RECORDED["seed_program"], abs=1e-3)


def test_the_checkpoint_loads_back(trained):
    model, _, path = trained
    again = seed_program.Classifier()
    again.load_state_dict(torch.load(path))
    again.eval()
    tokens = torch.randint(0, 20, (8, 12))
    with torch.no_grad():
        assert torch.equal(model(tokens), again(tokens))


def test_pytorchs_checkpoint_gives_pytorchs_outputs():
    recorded = torch.load(DATA / "seed_program.pt")
    model = seed_program.Classifier()
    model.load_state_dict(recorded["state_dict"])
    model.eval()
    with torch.no_grad():
        assert (model(recorded["tokens"]) - recorded["logits"]).abs().max().item() < 1e-5


@pytest.mark.parametrize("name", ["lenet", "mlp", "transformer"])
def test_every_step_has_pytorchs_loss(name, device):
    assert getattr(seeded_runs, name)(device=device) == pytest.approx(
        RECORDED[name], abs=1e-4 if device == "cpu" else 1e-3
    )


def test_training_in_a_thread_does_not_disturb(trained):
    """Grad mode is a thread's own: a model trains in one thread while another evaluates."""
    model, _, _ = trained
    losses = []
    other = threading.Thread(target=lambda: losses.extend(seeded_runs.mlp(5)))
    with torch.no_grad():
        other.start()
        model(torch.zeros(2, 12, dtype=torch.int64))
        other.join()
    assert len(losses) == 5
