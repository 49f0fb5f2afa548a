"""Networks of convolutions."""

from __future__ import annotations

from typing import Any

from .model_case import model, normal


@model(normal(8))
def mlp(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


@model(normal(1, 16, 16))
def lenet(torch: Any) -> Any:
    nn = torch.nn

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 6, 3)
            self.fc1, self.fc2 = nn.Linear(6 * 3 * 3, 16), nn.Linear(16, 10)

        def forward(self, x):
            x = torch.nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
            x = torch.nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
            x = torch.relu(self.fc1(torch.flatten(x, 1)))
            return torch.nn.functional.log_softmax(self.fc2(x), dim=1)

    return LeNet()


@model(normal(3, 16, 16))
def resnet(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
            self.conv2, self.bn2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
            self.relu = nn.ReLU(inplace=True)
            self.down = (
                nn.Identity()
                if stride == 1 and inner == outer
                else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
            )

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.down(x)
            return self.relu(out)

    return nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        Block(4, 4, 1), Block(4, 8, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, 10),
    )  # fmt: skip


@model(normal(3, 16, 16))
def mobilenet(torch: Any) -> Any:
    nn = torch.nn

    class Squeeze(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.pool, self.fc1 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1)
            self.fc2 = nn.Conv2d(4, channels, 1)

        def forward(self, x):
            scale = torch.relu(self.fc1(self.pool(x)))
            return x * torch.nn.functional.hardsigmoid(self.fc2(scale))

    class Inverted(nn.Module):
        def __init__(self, channels):
            super().__init__()
            wide = 2 * channels
            self.layers = nn.Sequential(
                nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
                nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.Hardswish(),
                Squeeze(wide), nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels),
            )  # fmt: skip

        def forward(self, x):
            return x + self.layers(x)

    return nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.Hardswish(), Inverted(4), Inverted(4),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.0), nn.Linear(4, 5),
    )  # fmt: skip


@model(normal(3, 16, 16))
def unet(torch: Any) -> Any:
    nn = torch.nn

    def twice(inner, outer):
        return nn.Sequential(
            nn.Conv2d(inner, outer, 3, padding=1), nn.InstanceNorm2d(outer), nn.LeakyReLU(0.1),
            nn.Conv2d(outer, outer, 3, padding=1), nn.ReLU(),
        )  # fmt: skip

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = twice(3, 4), twice(4, 8), twice(8, 8)
            self.pool = nn.MaxPool2d(2)
            self.up1, self.up2 = nn.ConvTranspose2d(8, 8, 2, 2), nn.Upsample(scale_factor=2.0, mode="bilinear")
            self.join1, self.join2, self.head = twice(16, 8), twice(12, 4), nn.Conv2d(4, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(self.pool(a))
            c = self.up1(self.bottom(self.pool(b)))
            c = self.up2(self.join1(torch.cat([b, c], 1)))
            return torch.sigmoid(self.head(self.join2(torch.cat([a, c], 1))))

    return UNet()


@model(normal(3, 16, 16))
def convnext(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.depth = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = nn.LayerNorm(channels, eps=1e-6)
            self.wide, self.narrow = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)
            self.scale = nn.Parameter(torch.full((channels,), 0.1))

        def forward(self, x):
            y = self.norm(self.depth(x).permute(0, 2, 3, 1))
            y = self.scale * self.narrow(torch.nn.functional.gelu(self.wide(y)))
            return x + y.permute(0, 3, 1, 2)

    class ConvNext(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.blocks = nn.Conv2d(3, 8, 4, 4), nn.Sequential(Block(8), Block(8))
            self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

        def forward(self, x):
            x = self.blocks(self.stem(x))
            return self.head(self.norm(x.mean([-2, -1])))

    return ConvNext()


@model(normal(1, 8, 8))
def vae(torch: Any) -> Any:
    nn = torch.nn

    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.SiLU(), nn.Flatten(), nn.Linear(64, 8))
            self.enter = nn.Linear(4, 64)
            self.decoder = nn.Sequential(nn.ELU(), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid())

        def forward(self, x):
            mean, spread = self.encoder(x).chunk(2, dim=1)
            z = mean + torch.exp(0.5 * spread) * 0.1
            out = self.decoder(self.enter(z).view(-1, 4, 4, 4))
            loss = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), dim=1)
            return out, loss

    return Vae()


@model(lambda rng, batch: rng.standard_normal((batch, 2, 24)).astype("float32"))
def wavenet(torch: Any) -> Any:
    nn = torch.nn

    class Gate(nn.Module):
        def __init__(self, dilation: int):
            super().__init__()
            self.dilation = dilation
            self.inner, self.outer = nn.Conv1d(4, 8, 2, dilation=dilation), nn.Conv1d(4, 4, 1)

        def forward(self, x):
            padded = torch.nn.functional.pad(x, (self.dilation, 0))
            a, b = self.inner(padded).split(4, dim=1)
            skip = self.outer(torch.tanh(a) * torch.sigmoid(b))
            return x + skip, skip

    class WaveNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = nn.Conv1d(2, 4, 1)
            self.gates = nn.ModuleList([Gate(1), Gate(2), Gate(4)])
            self.leave = nn.Conv1d(4, 3, 1)

        def forward(self, x):
            x = self.enter(x)
            total = torch.zeros_like(x)
            for gate in self.gates:
                x, skip = gate(x)
                total = total + skip
            return self.leave(torch.relu(total))

    return WaveNet()


@model(lambda rng, batch: (rng.standard_normal((batch, 4, 8, 8)).astype("float32"), rng.random(batch).astype("f")))
def diffusion(torch: Any) -> Any:
    """A block of a diffusion model's UNet: time embedding, group norm, attention over pixels."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2, self.norm3 = nn.GroupNorm(2, 4), nn.GroupNorm(4, 8), nn.GroupNorm(2, 8)
            self.conv1, self.conv2 = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.time, self.skip = nn.Linear(8, 16), nn.Conv2d(4, 8, 1)
            self.qkv, self.out = nn.Conv2d(8, 24, 1), nn.Conv2d(8, 4, 1)

        def forward(self, x, t):
            steps = torch.exp(torch.arange(4, dtype=torch.float32, device=x.device) * -1.5)
            angles = t[:, None] * 100.0 * steps[None]
            time = torch.nn.functional.silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=-1)))
            scale, shift = time[:, :, None, None].chunk(2, dim=1)
            y = self.conv1(torch.nn.functional.silu(self.norm1(x)))
            y = self.norm2(y) * (1 + scale) + shift
            y = self.conv2(torch.nn.functional.silu(y)) + self.skip(x)
            b, c, h, w = y.shape
            q, k, v = self.qkv(self.norm3(y)).reshape(b, 3, c, h * w).unbind(1)
            weights = torch.softmax(torch.einsum("bcn,bcm->bnm", q, k) * c**-0.5, dim=-1)
            y = y + torch.einsum("bnm,bcm->bcn", weights, v).reshape(b, c, h, w)
            y = torch.nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")
            return self.out(y)

    return Block()


@model(normal(3, 16, 16), scripts=False)
def detection(torch: Any) -> Any:
    """A head with anchors: boxes of the best places, refined where the picture is light, else left as they are."""
    nn = torch.nn

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
            self.score, self.box = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 8, 1)
            grid = torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij"), -1)
            self.register_buffer("centres", (grid.reshape(1, 16, 1, 2) + 0.5) * 4.0, persistent=False)
            self.register_buffer("sizes", torch.tensor([[4.0, 4.0], [8.0, 6.0]]).reshape(1, 1, 2, 2))

        def forward(self, x):
            features = self.body(x)
            scores = torch.sigmoid(self.score(features)).flatten(2).transpose(1, 2)
            deltas = self.box(features).flatten(2).transpose(1, 2).reshape(x.shape[0], 16, 2, 4)
            centres = self.centres + deltas[..., :2] * self.sizes
            sizes = self.sizes * torch.exp(deltas[..., 2:].clamp(max=2.0))
            boxes = torch.cat([centres - sizes / 2, centres + sizes / 2], -1).reshape(x.shape[0], 32, 4)
            best, places = torch.topk(scores.reshape(x.shape[0], 32), 5, dim=1)
            boxes = torch.gather(boxes, 1, places[:, :, None].expand(-1, -1, 4))
            boxes = torch.cond(
                features.mean() > 0.1, lambda b: b.clamp(0.0, 16.0), lambda b: (b * 0.5).clamp(0.0, 8.0), (boxes,)
            )
            return boxes, torch.where(best > 0.5, best, torch.zeros_like(best)), places

    return Head()
