"""A small convolutional network learns handwritten digits (needs scikit-learn for the data).

python examples/digits_cnn.py --device cpu
"""

import argparse
from typing import Any, cast

from sklearn.datasets import load_digits

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.utils.data import DataLoader, TensorDataset, random_split

Batches = DataLoader[tuple[Tensor, ...]]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 10))

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.classify(self.features(images))
        return scores


def accuracy(model: nn.Module, loader: Batches, device: str) -> float:
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
            count += len(labels)
    return right / count


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    digits = cast(Any, load_digits())
    data = TensorDataset(
        torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
    )
    training, test = random_split(data, [0.8, 0.2])
    model = Network().to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader, test_loader = DataLoader(training, batch_size=64, shuffle=True), DataLoader(test, batch_size=256)
    loss, reached = torch.zeros(()), 0.0
    for epoch in range(options.epochs):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.to(options.device)), labels.to(options.device))
            loss.backward()
            optimizer.step()
        reached = accuracy(model, test_loader, options.device)
        print(f"epoch {epoch + 1}  loss {loss.item():.3f}  test accuracy {reached:.1%}")
    return reached


if __name__ == "__main__":
    main()
