"""Optimizers with parameter groups, schedulers, clipping, averaging and mixed precision."""

import torchlite as torch
from torchlite import nn
from torchlite.optim import lr_scheduler
from torchlite.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
)
from torchlite.optim.swa_utils import AveragedModel

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
x = torch.randn(16, 4)
y = x.mean(dim=1, keepdim=True)
decay = [p for p in model.parameters() if p.dim() > 1]
plain = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=0.02, betas=(0.9, 0.95)
)
scheduler = SequentialLR(
    optimizer, [LinearLR(optimizer, start_factor=0.1, total_iters=5), CosineAnnealingLR(optimizer, T_max=15)], [5]
)
averaged = AveragedModel(model)
rates, losses, norms = [], [], []
for step in range(20):
    with torch.autocast(device_type="cpu", enabled=False):
        loss = nn.functional.huber_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
    optimizer.step()
    scheduler.step()
    averaged.update_parameters(model)
    rates.append(scheduler.get_last_lr()[0])
    losses.append(loss.item())
for group in optimizer.param_groups:
    group["lr"] *= 0.5
print(max(rates), losses[0], losses[-1], max(norms))
assert losses[-1] < losses[0] and max(rates) <= 0.02 + 1e-9

sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
warmup = LambdaLR(sgd, lr_lambda=lambda epoch: min(1.0, (epoch + 1) / 4))
sgd.step()
warmup.step()
plateau = ReduceLROnPlateau(sgd, mode="min", factor=0.5, patience=0)
for value in (1.0, 1.0, 1.0):
    plateau.step(value)
cycle = OneCycleLR(torch.optim.Adam(model.parameters()), max_lr=0.1, total_steps=10)
base: lr_scheduler.LRScheduler = cycle
print(sgd.param_groups[0]["lr"], base.get_last_lr())
assert sgd.param_groups[0]["lr"] < 0.05
