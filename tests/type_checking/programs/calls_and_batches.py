"""What a call of a module and a batch of a loader are: the result of `forward`, and that of the default collate."""

from typing import Any, NamedTuple, assert_type

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split


class Encoder(nn.Module):
    def __init__(self, inputs: int = 4, hidden: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.mean, self.scale = nn.Linear(hidden, 2), nn.Linear(hidden, 2)

    def forward(self, x: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        hidden = assert_type(self.body(x), Tensor)
        return self.mean(hidden), nn.functional.softplus(self.scale(hidden)) * temperature


class Untyped(nn.Module):
    def forward(self, x, scale=None):
        return x if scale is None else x * scale


class MaskedLinear(nn.Linear):
    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(input if mask is None else input * mask)


x = torch.ones(3, 4)
encoder = Encoder()
mean, scale = assert_type(encoder(x, temperature=0.5), tuple[Tensor, Tensor])
assert_type(nn.Linear(4, 2)(x), Tensor)
assert_type(MaskedLinear(4, 2)(x, x > 0), Tensor)
assert_type(nn.CrossEntropyLoss()(nn.Linear(4, 2)(x), torch.tensor([0, 1, 1])), Tensor).backward()
output, (hidden, cell) = nn.LSTM(4, 5)(x)
assert_type(cell, Tensor)
attended, weights = nn.MultiheadAttention(4, 2)(x, x, x)
assert_type(weights, Tensor | None)
assert (Untyped()(x) + Untyped()(x, scale=2)).sum() == 36


def apply(layer: nn.Module, layers: nn.ModuleList) -> None:
    assert_type(layer(x, 1), Any)
    for each in layers:
        assert_type(each(x), Any)


apply(Untyped(), nn.ModuleList([nn.Linear(4, 2)]))


class Point(NamedTuple):
    place: Tensor
    label: int


class Rows(Dataset[tuple[Tensor, int]]):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return x[index], index

    def __len__(self) -> int:
        return 3


class Records(Dataset[dict[str, Tensor]]):
    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"row": x[index]}

    def __len__(self) -> int:
        return 3


class Points(Dataset[Point]):
    def __getitem__(self, index: int) -> Point:
        return Point(x[index], index)

    def __len__(self) -> int:
        return 3


pairs = TensorDataset(x, torch.arange(3))
loader = assert_type(DataLoader(pairs, batch_size=2, shuffle=True), DataLoader[tuple[Tensor, ...]])
for batch in loader:
    assert_type(batch, list[Tensor])
    assert type(batch) is list
for step, (rows, labels) in enumerate(loader):
    assert_type(labels, Tensor)
first, second = random_split(pairs, [2, 1])
assert_type(first, Subset[tuple[Tensor, ...]])
assert_type(next(iter(DataLoader(first))), list[Tensor])
for rows, numbers in DataLoader(Rows(), batch_size=3):
    assert assert_type(numbers, Tensor).tolist() == [0, 1, 2]
for record in DataLoader(Records(), batch_size=3):
    assert assert_type(record["row"], Tensor).shape == (3, 4)
for points in DataLoader(Points(), batch_size=3):
    assert_type(points, Any)
    assert points.label.tolist() == [0, 1, 2]
for lengths in DataLoader(Rows(), batch_size=3, collate_fn=len):
    assert_type(lengths, Any)
    assert lengths == 3
for row, number in DataLoader(Rows(), batch_size=None):
    assert_type(number, Any)
    assert isinstance(number, int)
