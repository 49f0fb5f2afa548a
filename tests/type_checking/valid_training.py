"""A training script as a strict user writes it: both checkers accept it, and the tests run it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.nn import functional as F
from torchlite.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Squares(Dataset[tuple[Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.rows = torch.randn(count, 4)
        self.labels = (self.rows.sum(dim=1) > 0).long()

    def __len__(self) -> int:
        return self.rows.shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.rows[index], int(self.labels[index])


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        yield from torch.arange(3)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(input)
        ctx.factor = factor
        return input * factor

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (saved,) = ctx.saved_tensors
        assert saved.shape == grads[0].shape
        return grads[0] * ctx.factor, None


class Network(nn.Module):
    running: Tensor

    def __init__(self, width: int = 8, classes: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(width))
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.named = nn.ModuleDict({"head": nn.Linear(width, classes)})
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("running", torch.zeros(1))

    def forward(self, rows: Tensor, *, factor: float = 1.0) -> Tensor:
        out: Tensor = self.layers(rows)
        for block in self.blocks:
            out = F.relu(block(out)) + out
        scaled: Tensor = Scale.apply(out * self.scale, factor)
        result: Tensor = self.named["head"](scaled)
        return result


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[Tensor, int]], device: torch.device) -> float:
    model.eval()
    right = total = 0
    for rows, labels in loader:
        predicted = model(rows.to(device)).argmax(dim=1)
        right += int((predicted == labels.to(device)).sum())
        total += len(labels)
    return right / total


def train(epochs: int = 1, device: torch.device | str = "cpu") -> float:
    torch.manual_seed(0)
    data = Squares(64)
    training, test = random_split(data, [0.75, 0.25], generator=torch.Generator().manual_seed(1))
    assert_type(training, Subset[tuple[Tensor, int]])
    loader = DataLoader(training, batch_size=16, shuffle=True, drop_last=True)
    assert_type(loader, DataLoader[tuple[Tensor, int]])
    model = Network().to(device)
    assert_type(model, Network)
    model = model.train().double().float().requires_grad_()
    assert_type(model, Network)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for name, p in model.named_parameters() if p.ndim <= 1 and not name.startswith("_")]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "lr": 1e-2}], lr=1e-3, betas=(0.9, 0.95)
    )
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: (epoch + 1) / 2),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10),
        ],
        milestones=[1],
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = torch.zeros(())
    for _ in range(epochs):
        for rows, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
                loss = criterion(model(rows, factor=2.0), labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            assert_type(norm, Tensor)
            scaler.step(optimizer)
            scaler.update()
        schedule.step()
    for group in optimizer.param_groups:
        group["lr"] = float(group["lr"]) / 2
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu", weights_only=True)
    missing, unexpected = model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert not missing and not unexpected
    found = accuracy(model, DataLoader(test, batch_size=16), torch.device(device))
    assert_type(found, float)
    return found


def sets_of_data() -> int:
    pairs = TensorDataset(torch.ones(3, 2), torch.zeros(3))
    both = ConcatDataset([pairs, pairs])
    return len(both) + sum(1 for _ in DataLoader(Stream(), batch_size=None))


def hooks() -> None:
    layer = nn.Linear(2, 2)

    def show(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        assert output.shape[-1] == 2

    handle = layer.register_forward_hook(show)
    layer(torch.ones(1, 2)).sum().backward()
    handle.remove()
    nn.init.xavier_uniform_(layer.weight)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(2))
        layer.bias.zero_()
    assert_type(layer.in_features, int)
    weights = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    assert isinstance(weights["weight"], np.ndarray)


@torch.inference_mode()
def infer(rows: Tensor) -> Tensor:
    with torch.enable_grad(), torch.set_grad_enabled(False):
        return rows.softmax(-1)


def second_order() -> Tensor:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    torch.autograd.backward(g.sum())
    assert x.grad is not None
    assert_type(x.grad, Tensor)
    return x.grad


class Squared:
    """A data set of no base class."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.tensor([float(index * index)]), index


@torch.compile
def doubled(x: Tensor) -> Tensor:
    return 2 * x


@torch.compile(dynamic=False)
def halved(x: Tensor, by: float = 2.0) -> Tensor:
    return x / by


def compiled() -> float:
    assert_type(doubled(torch.ones(2)), Tensor)
    model = torch.compile(nn.Linear(2, 1))
    assert_type(model, nn.Linear)
    total = 0.0
    loader = DataLoader(Squared(), batch_size=2)
    assert_type(loader, DataLoader[tuple[Tensor, int]])
    for values, _ in loader:
        total += halved(values, by=4.0).sum().item()
    return total


def accelerators() -> list[str]:
    found = ["cpu"]
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    if torch.cuda.is_available():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda.synchronize()
        found.append(torch.cuda.get_device_name(0))
    if torch.opencl.is_available():
        found.append(f"opencl:{torch.opencl.current_device()}")
    return found


if __name__ == "__main__":
    train()
    assert sets_of_data() == 9
    hooks()
    assert not infer(torch.ones(2, requires_grad=True)).requires_grad
    assert second_order().tolist() == [6.0, 12.0]
    assert compiled() == 3.5
    assert "cpu" in accelerators()
