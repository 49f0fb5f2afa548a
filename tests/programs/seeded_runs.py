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
    """A three-layer network with Adam, fed by a shuffling DataLoader: the loss of every step. Everything random is drawn on the CPU."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                                torch.nn.Linear(64, 1)).to(device)
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
