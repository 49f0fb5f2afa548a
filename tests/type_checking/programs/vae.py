"""A variational autoencoder: reparametrization and the Kullback-Leibler term."""

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import Tensor, nn, optim


class VAE(nn.Module):
    def __init__(self, inputs: int = 16, hidden: int = 12, latent: int = 2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, inputs), nn.Sigmoid())

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.encoder(x)
        return self.mean(h), self.logvar(h)

    def reparametrize(self, mean: Tensor, logvar: Tensor) -> Tensor:
        std = torch.exp(0.5 * logvar)
        return mean + torch.randn_like(std) * std

    def forward(self, x: Tensor):
        mean, logvar = self.encode(x)
        return self.decoder(self.reparametrize(mean, logvar)), mean, logvar


def loss_function(recon: Tensor, x: Tensor, mean: Tensor, logvar: Tensor) -> Tensor:
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
    return bce + kld


torch.manual_seed(0)
data = (torch.rand(32, 16) > 0.5).float()
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(40):
    recon, mean, logvar = model(data)
    loss = loss_function(recon, data, mean, logvar)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item() / len(data))
with torch.no_grad():
    sample = model.decoder(torch.randn(4, 2))
print(losses[0], losses[-1], sample.shape)
assert losses[-1] < losses[0] and sample.min() >= 0
