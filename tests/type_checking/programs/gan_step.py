"""A step of a generative adversarial network: two networks, two optimizers, labels of ones and zeros."""

import torchlite as torch
import torchlite.nn as nn
import torchlite.optim as optim


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.2)
        nn.init.constant_(m.bias.data, 0)


torch.manual_seed(0)
latent = 4
netG = nn.Sequential(nn.Linear(latent, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 2), nn.Tanh())
netD = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
real = 0.1 * torch.randn(32, 2) + torch.tensor([0.5, -0.5])
D_losses, G_losses = [], []
for step in range(10):
    netD.zero_grad()
    label = torch.full((real.size(0),), 1.0, dtype=torch.float)
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    noise = torch.randn(real.size(0), latent)
    fake = netG(noise)
    label.fill_(0.0)
    errD_fake = criterion(netD(fake.detach()).view(-1), label)
    errD_fake.backward()
    optimizerD.step()

    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake).view(-1), label)
    errG.backward()
    optimizerG.step()
    D_losses.append((errD_real + errD_fake).item())
    G_losses.append(errG.item())
    print(f"[{step}] Loss_D: {D_losses[-1]:.4f} Loss_G: {G_losses[-1]:.4f}")
assert D_losses[-1] < D_losses[0] and all(p.grad is not None for p in netG.parameters())
