"""A classifier of sequences: embedding, transformer encoder, AdamW, cross entropy, DataLoader, checkpoint."""

import torchlite as torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 32)
        layer = torch.nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, num_layers=2)
        self.head = torch.nn.Linear(32, 3)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)).mean(dim=1))


def data(count):
    """Sequences over 20 symbols; the class is which third of the symbols is the most frequent one
    among the first 18.
    """
    tokens = torch.randint(0, 18, (count, 12))
    counts = torch.stack([((tokens // 6) == group).sum(dim=1) for group in range(3)], dim=1)
    return tokens, counts.argmax(dim=1)


def train(path, epochs=3):
    """Trains, saves the weights to `path`, and returns the model and the mean loss of every epoch."""
    torch.manual_seed(0)
    tokens, labels = data(400)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens, labels), batch_size=32, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = torch.nn.CrossEntropyLoss()
    losses = []
    for _ in range(epochs):
        total = 0.0
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(loader))
    torch.save(model.state_dict(), path)
    return model.eval(), losses
