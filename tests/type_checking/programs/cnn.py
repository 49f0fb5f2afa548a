"""A convolutional network with batch norm and dropout, and its number of parameters."""

import torchlite as torch
from torchlite import Tensor, nn


class Block(nn.Module):
    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(torch.relu(self.norm(self.conv(x))))


class Classifier(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(Block(1, 4), Block(4, 8), nn.Dropout(0.25))
        self.head = nn.Linear(8 * 2 * 2, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.head(x.view(x.size(0), -1))


torch.manual_seed(0)
model = Classifier()
images = torch.rand(8, 1, 8, 8)
targets = torch.randint(0, 10, (8,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
losses: list[float] = []
for _ in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images), targets, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
count = sum(p.numel() for p in model.parameters() if p.requires_grad)
probabilities = torch.softmax(model.eval()(images), dim=-1)
best, index = probabilities.max(dim=1)
values, classes = probabilities.topk(3, dim=1)
print(count, losses[-1], best.mean().item(), index.tolist(), classes.shape)
assert losses[-1] < losses[0] and count == 4 * 9 + 8 + 4 * 8 * 9 + 16 + 32 * 10 + 10
