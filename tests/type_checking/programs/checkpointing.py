"""Checkpoints: save and load a model, an optimizer and a scheduler, and continue; activation checkpointing."""

import os
import tempfile

import torchlite as torch
from torchlite import nn
from torchlite.utils.checkpoint import checkpoint


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    return model, optimizer, scheduler


def step(model, optimizer, scheduler, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


x = torch.ones(4, 3)
model, optimizer, scheduler = build()
for _ in range(3):
    step(model, optimizer, scheduler, x)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save(
        {
            "epoch": 3,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "rng": torch.get_rng_state(),
        },
        path,
    )
    expected = [step(model, optimizer, scheduler, x) for _ in range(3)]

    state = torch.load(path, map_location="cpu", weights_only=True)
    model, optimizer, scheduler = build()
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"])
    resumed = [step(model, optimizer, scheduler, x) for _ in range(3)]
assert resumed == expected and state["epoch"] == 3
print(resumed, scheduler.get_last_lr(), optimizer.param_groups[0]["lr"])

missing, unexpected = model.load_state_dict({"0.weight": torch.zeros(8, 3)}, strict=False)
assert "0.bias" in missing and not unexpected

inputs = torch.ones(4, 3, requires_grad=True)
out = checkpoint(model, inputs, use_reentrant=False)
out.sum().backward()
assert inputs.grad is not None and inputs.grad.shape == inputs.shape
