"""Seeded training runs whose loss is compared with PyTorch's at every step."""

import torchlite as torch


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(6, 16, 5)
        self.fc1 = torch.nn.Linear(16 * 5 * 5, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def lenet(steps=50, device="cpu"):
    """LeNet on random images with SGD and momentum: the loss of every step. Everything random is drawn on the CPU."""
    torch.manual_seed(0)
    model = LeNet().to(device)
    images, labels = torch.randn(160, 1, 28, 28).to(device), torch.randint(0, 10, (160,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for step in range(steps):
        rows = torch.randperm(160)[:32].to(device)
        loss = torch.nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def mlp(steps=50, device="cpu"):
    """A three-layer network with Adam, fed by a shuffling DataLoader: the loss of every step. Everything random is
    drawn on the CPU.
    """
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 64),
        torch.nn.GELU(),
        torch.nn.LayerNorm(64),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 1),
    ).to(device)
    x = torch.randn(320, 20)
    y = (x[:, :5] ** 2).sum(dim=1, keepdim=True) + 0.1 * torch.randn(320, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = torch.nn.MSELoss()
    losses = []
    while len(losses) < steps:
        for batch, target in loader:
            loss = criterion(model(batch.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses[:steps]


class Decoder(torch.nn.Module):
    """Next-token prediction by two layers of causal attention."""

    def __init__(self, words=30, width=32, length=24):
        super().__init__()
        self.embed, self.place = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
        layer = torch.nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers, self.norm = (
            torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            torch.nn.LayerNorm(width),
        )
        self.head = torch.nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.layers(x, mask=mask, is_causal=True)))


def transformer(steps=50, device="cpu"):
    """A small decoder on tokens that grow by 7, with AdamW and clipped gradients: the loss of every step."""
    torch.manual_seed(2)
    model = Decoder().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    losses = []
    for step in range(steps):
        tokens = (torch.randint(0, 30, (16, 1)) + 7 * torch.arange(24)).remainder(30).to(device)
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 30), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
