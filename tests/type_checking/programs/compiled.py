"""torch.compile on a function, on a model and as a decorator."""

import torchlite as torch
from torchlite import Tensor, nn


@torch.compile
def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


@torch.compile(dynamic=False)
def scaled(x, factor=2.0):
    return x * factor + 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])
        self.names = nn.ModuleDict({"head": nn.Linear(4, 1)})

    def forward(self, x: Tensor) -> Tensor:
        for layer, scale in zip(self.layers, self.scales):
            x = torch.relu(layer(x)) * scale
        return self.names["head"](x)


torch.manual_seed(0)
x = torch.randn(8, 4)
assert torch.allclose(gelu(x), nn.functional.gelu(x, approximate="tanh"), atol=1e-5)
assert torch.equal(scaled(x), x * 2 + 1)
model = Net()
compiled = torch.compile(model, mode="default")
optimizer = torch.optim.SGD(compiled.parameters(), lr=0.05)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = (compiled(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
assert losses[-1] < losses[0] and torch.allclose(compiled(x), model(x), atol=1e-6)
