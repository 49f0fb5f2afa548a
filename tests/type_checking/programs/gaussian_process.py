"""Gaussian process regression: the marginal likelihood by a Cholesky factor, its parameters by gradient descent."""

import math

import torchlite as torch
from torchlite import Tensor, nn


class GP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log_length = nn.Parameter(torch.tensor(0.0))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))

    def kernel(self, a: Tensor, b: Tensor) -> Tensor:
        distance = torch.cdist(a, b) ** 2 / self.log_length.exp() ** 2
        return self.log_scale.exp() * torch.exp(-0.5 * distance)

    def factor(self, x: Tensor) -> Tensor:
        return torch.linalg.cholesky(self.kernel(x, x) + self.log_noise.exp() * torch.eye(len(x), dtype=x.dtype))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        L = self.factor(x)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        return 0.5 * y @ alpha + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x: Tensor, y: Tensor, new: Tensor):
        L = self.factor(x)
        cross = self.kernel(x, new)
        v = torch.linalg.solve_triangular(L, cross, upper=False)
        mean = cross.T @ torch.cholesky_solve(y[:, None], L)[:, 0]
        return mean, (self.kernel(new, new) - v.T @ v).diagonal().clamp(min=0).sqrt()


torch.manual_seed(0)
x = torch.linspace(0, 6, 20, dtype=torch.float64)[:, None]
y = torch.sin(x[:, 0]) + 0.05 * torch.randn(20, dtype=torch.float64)
gp = GP().double()
optimizer = torch.optim.LBFGS(gp.parameters(), lr=0.5, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = gp(x, y)
    loss.backward()
    return loss


start = gp(x, y).item()
for _ in range(3):
    optimizer.step(closure)
mean, std = gp.predict(x, y, torch.tensor([[1.5], [4.7]], dtype=torch.float64))
print(start, gp(x, y).item(), mean.tolist(), std.tolist())
assert gp(x, y).item() < start and torch.allclose(mean, torch.tensor([1.0, -1.0]).double(), atol=0.15)
