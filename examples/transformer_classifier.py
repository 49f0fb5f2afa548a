"""A transformer encoder learns to tell which of two symbols is the more frequent one in a sequence.

python examples/transformer_classifier.py --device cpu
"""

import argparse

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    """Embedding, positions, an encoder, and the mean over the sequence."""

    def __init__(self, symbols: int = 12, width: int = 32, classes: int = 2, length: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.head(self.encoder(self.embedding(tokens) + self.positions).mean(1))
        return scores


def sequences(count: int, length: int = 16, symbols: int = 12) -> tuple[Tensor, Tensor]:
    """Random sequences without a tie between symbols 0 and 1, and whether 1 is the more frequent one."""
    tokens = torch.randint(0, symbols, (count * 2, length))
    tokens[tokens < 6] = tokens[tokens < 6] % 2  # the two are frequent
    difference = (tokens == 1).sum(1) - (tokens == 0).sum(1)
    keep = (difference != 0).nonzero().flatten()[:count]
    return tokens[keep], (difference[keep] > 0).long()


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--save", help="write the trained weights to this file")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*sequences(options.rows)), batch_size=50, shuffle=True)
    test_tokens, test_labels = (t.to(options.device) for t in sequences(400))
    model = Classifier().to(options.device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    accuracy = 0.0
    for epoch in range(options.epochs):
        model.train()
        total = 0.0
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens.to(options.device)), labels.to(options.device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = (model(test_tokens).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.3f}  test accuracy {accuracy:.1%}")
    if options.save:
        torch.save(model.state_dict(), options.save)
    return accuracy


if __name__ == "__main__":
    main()
