"""Vision workloads: convolutional networks, and a vision transformer."""

from __future__ import annotations

import io
from typing import Any

from .context import Context, Rows
from .network_file import WARM_UPS


def conv(T: Any, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list:
    """Return a convolution without bias that keeps the size (but for its stride), and a batch norm."""
    nn = T.nn
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


def sum_of_branches(T: Any) -> Any:
    """Return a class of modules that add the results of two branches."""
    nn = T.nn
    Module: Any = T.nn.Module

    class Sum(Module):
        def __init__(self, branch: Any, other: Any = None, activation: bool = True):
            super().__init__()
            self.branch, self.other = branch, other if other is not None else nn.Identity()
            self.last = nn.ReLU() if activation else nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.last(self.branch(x) + self.other(x))

    return Sum


def resnet(T: Any, depths: tuple[int, ...], bottleneck: bool, classes: int, small_images: bool) -> Any:
    nn, Sum = T.nn, sum_of_branches(T)
    kernel, stride = (3, 1) if small_images else (7, 2)
    layers = [*conv(T, 3, 64, kernel, stride), nn.ReLU()] + [nn.MaxPool2d(3, 2, 1)] * (not small_images)
    width, before = 64, 64
    for level, depth in enumerate(depths):
        width, after = 64 << level, (64 << level) * (4 if bottleneck else 1)
        for index in range(depth):
            stride = 2 if level and not index else 1
            if bottleneck:
                branch = [*conv(T, before, width, 1), nn.ReLU(), *conv(T, width, width, 3, stride), nn.ReLU()]
                branch += conv(T, width, after, 1)
            else:
                branch = [*conv(T, before, width, 3, stride), nn.ReLU(), *conv(T, width, width, 3)]
            other = None if before == after and stride == 1 else nn.Sequential(*conv(T, before, after, 1, stride))
            layers.append(Sum(nn.Sequential(*branch), other))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def classify(c: Context, model: Any, images: Any, classes: int) -> Any:
    """Training step of a classifier by SGD with momentum."""
    y = c.integers(classes, images.shape[0])
    optimizer = c.T.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return c.step(model, (images,), lambda out: c.T.nn.functional.cross_entropy(out, y), optimizer)


def infer(c: Context, name: str, model: Any, one: Any) -> Rows:
    """Return the rows of a network without gradients: its own, and that of its program from a `.pt2` file."""
    T, file = c.T, io.BytesIO()
    model.eval()
    with T.no_grad():
        yield f"{name}.infer_b1", lambda: model(one)
        T.export.save(T.export.export(model, (one,)), file)
        file.seek(0)
        loaded = T.export.load(file).module()
        for _ in range(WARM_UPS):
            loaded(one)
        yield f"{name}.pt2_b1", lambda: loaded(one)


def resnet18(c: Context) -> Rows:
    model = resnet(c.T, (2, 2, 2, 2) if c.scale >= 1 else (1, 1), False, 10, True).to(c.device)
    yield "resnet18_cifar.train", classify(c, model, c.normal(c.size(16, 2), 3, 32, 32), 10)


def resnet50(c: Context) -> Rows:
    model = resnet(c.T, (3, 4, 6, 3) if c.scale >= 1 else (1, 1), True, 1000, False).to(c.device)
    x = c.normal(c.size(4, 2), 3, c.size(224, 32), c.size(224, 32))
    yield "resnet50.train_b4", classify(c, model, x, 1000)
    model.eval()
    one = x[:1]
    with c.T.no_grad():
        yield "resnet50.infer_b1", lambda: model(one)


# MobileNetV2's table: expansion, channels, how often, stride.
_INVERTED = (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)


def mobilenet_v2(T: Any, whole: bool = True) -> Any:
    """Return a MobileNetV2, or the first two stages of one."""
    nn, Sum = T.nn, sum_of_branches(T)
    layers, before = [*conv(T, 3, 32, 3, 2), nn.ReLU6()], 32
    for expansion, channels, count, first in _INVERTED if whole else _INVERTED[:2]:
        for stride in [first] + [1] * (count - 1):
            inner = before * expansion
            branch = [*conv(T, before, inner, 1), nn.ReLU6()] if expansion > 1 else []
            branch += [*conv(T, inner, inner, 3, stride, inner), nn.ReLU6(), *conv(T, inner, channels, 1)]
            block = nn.Sequential(*branch)
            layers.append(Sum(block, activation=False) if stride == 1 and before == channels else block)
            before = channels
    layers += [*conv(T, before, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


def mobilenet(c: Context) -> Rows:
    T = c.T
    model = mobilenet_v2(T, c.scale >= 1).to(c.device)
    side = c.size(128, 32)
    yield "mobilenet.train", classify(c, model, c.normal(c.size(8, 2), 3, side, side), 1000)
    one = c.normal(1, 3, c.size(224, 32), c.size(224, 32))
    yield from infer(c, "mobilenet", model, one)


def unet(c: Context) -> Rows:
    T, nn = c.T, c.T.nn

    def double(inputs: int, outputs: int) -> Any:
        return nn.Sequential(*conv(T, inputs, outputs, 3), nn.ReLU(), *conv(T, outputs, outputs, 3), nn.ReLU())

    Module: Any = c.T.nn.Module

    class UNet(Module):
        def __init__(self, widths: tuple[int, ...], classes: int):
            super().__init__()
            pairs = list(zip(widths, widths[1:]))  # noqa: B905, RUF007 - runs on any interpreter
            self.first = double(3, widths[0])
            self.down = nn.ModuleList([nn.Sequential(nn.MaxPool2d(2), double(a, b)) for a, b in pairs])
            self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs)])
            self.join = nn.ModuleList([double(2 * a, a) for a, _ in reversed(pairs)])
            self.head = nn.Conv2d(widths[0], classes, 1)

        def forward(self, x: Any) -> Any:
            kept = [self.first(x)]
            for level in self.down:
                kept.append(level(kept[-1]))
            x = kept.pop()
            for up, join in zip(self.up, self.join):  # noqa: B905
                x = join(T.cat([kept.pop(), up(x)], 1))
            return self.head(x)

    classes, side, batch = 5, c.size(128, 16), c.size(2)
    model = UNet((24, 48, 96, 192) if c.scale >= 1 else (8, 16), classes).to(c.device)
    x, y = c.normal(batch, 3, side, side), c.integers(classes, batch, side, side)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    yield "unet.train", c.step(model, (x,), lambda out: nn.functional.cross_entropy(out, y), optimizer)
    one = x[:1]
    yield from infer(c, "unet", model, one)


def wavenet(c: Context) -> Rows:
    T, nn, F = c.T, c.T.nn, c.T.nn.functional
    Module: Any = c.T.nn.Module

    class Gated(Module):
        def __init__(self, width: int, dilation: int):
            super().__init__()
            self.dilation = dilation
            self.both = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
            self.residual, self.skip = nn.Conv1d(width, width, 1), nn.Conv1d(width, width, 1)

        def forward(self, x: Any) -> Any:
            through, gate = self.both(F.pad(x, (self.dilation, 0))).chunk(2, 1)
            z = T.tanh(through) * T.sigmoid(gate)
            return x + self.residual(z), self.skip(z)

    class WaveNet(Module):
        def __init__(self, levels: int, width: int, layers: int):
            super().__init__()
            self.first = nn.Conv1d(1, width, 1)
            self.layers = nn.ModuleList([Gated(width, 1 << i) for i in range(layers)])
            self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, levels, 1))

        def forward(self, x: Any) -> Any:
            x, skipped = self.first(x), 0
            for layer in self.layers:
                x, more = layer(x)
                skipped = skipped + more
            return self.head(skipped)

    levels, batch, length = 256, c.size(2), c.size(2000, 600)
    model = WaveNet(levels, c.size(64, 8), 9).to(c.device)
    x, y = c.normal(batch, 1, length), c.integers(levels, batch, length)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    yield "wavenet.train", c.step(model, (x,), lambda out: F.cross_entropy(out, y), optimizer)
    one = x[:1]
    yield from infer(c, "wavenet", model, one)


def vit(c: Context) -> Rows:
    T, nn = c.T, c.T.nn
    Module: Any = c.T.nn.Module

    class Layer(Module):
        def __init__(self, width: int, heads: int):
            super().__init__()
            self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            z = self.before_attention(x)
            x = x + self.attention(z, z, z, need_weights=False)[0]
            return x + self.feed(self.before_feed(x))

    class ViT(Module):
        def __init__(self, side: int, width: int, heads: int, depth: int, classes: int):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 16, 16)
            self.token = nn.Parameter(T.zeros(1, 1, width))
            self.places = nn.Parameter(T.randn(1, (side // 16) ** 2 + 1, width) * 0.02)
            self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = T.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.last(self.layers(x))[:, 0])

    side, classes = c.size(160, 32), 100
    model = ViT(side, c.size(192, 48), 3, c.size(8), classes).to(c.device)
    x, y = c.normal(c.size(8, 2), 3, side, side), c.integers(classes, c.size(8, 2))
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    yield "vit.train", c.step(model, (x,), lambda out: nn.functional.cross_entropy(out, y), optimizer)
    one = x[:1]
    yield from infer(c, "vit", model, one)
