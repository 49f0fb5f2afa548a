"""Fifteen small networks of all kinds with all optimizers, trained for some steps: what they end at must be the same in
every run, with any number of threads.

usage: python -m tests.programs.networks [--device cpu] [--steps 30] [--runs 5] [--threads 1 2 4] [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import sys

import numpy as np

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn, optim

NETWORKS = {}


def network(make_optimizer):
    """Registers `function() -> (modules, loss)`: the loss of one step is what `loss()` returns."""

    def decorate(function):
        NETWORKS[function.__name__] = function, make_optimizer
        return function

    return decorate


def digest(tensors) -> str:
    """Return a digest that is equal for lists of tensors with the same bits."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    return total.hexdigest()[:16]


def trained(name: str, device: str = "cpu", steps: int = 30) -> str:
    """The digest of a network's parameters and of its last loss after some steps from seed 0."""
    build, make_optimizer = NETWORKS[name]
    torch.manual_seed(0)
    with torch.device(device):
        module, loss = build()
        optimizer = make_optimizer(list(module.parameters()))

        def closure():
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        for _ in range(steps):
            last = optimizer.step(closure)
    return digest([*module.parameters(), *module.buffers(), last])


def classes(count: int, of: int):
    return torch.randint(0, of, (count,))


@network(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4))
def perceptron():
    m = nn.Sequential(
        nn.Linear(300, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 10)
    )
    x, y = torch.randn(256, 300), classes(256, 10)
    return m, lambda: F.cross_entropy(m(x), y)


@network(lambda p: optim.Adadelta(p))
def cnn():
    m = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.25),
        nn.Flatten(), nn.Linear(6400, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10), nn.LogSoftmax(1),
    )  # fmt: skip
    x, y = torch.randn(16, 1, 24, 24), classes(16, 10)
    return m, lambda: F.nll_loss(m(x), y)


@network(lambda p: optim.RMSprop(p, lr=1e-3, momentum=0.5))
def residual():
    m = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU())
    block = nn.Sequential(
        nn.Conv2d(64, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1)
    )
    head = nn.Linear(64, 10)
    x, y = torch.randn(8, 3, 36, 36), classes(8, 10)

    def loss():
        h = m(x)
        return F.cross_entropy(head(F.adaptive_avg_pool2d(h + block(h), 1).flatten(1)), y, label_smoothing=0.1)

    return nn.ModuleList([m, block, head]), loss


@network(lambda p: optim.AdamW(p, lr=1e-3))
def gpt():
    words, place, norm = nn.Embedding(101, 64), nn.Embedding(48, 64), nn.LayerNorm(64)
    joined, out, wide, back = nn.Linear(64, 192), nn.Linear(64, 64), nn.Linear(64, 256), nn.Linear(256, 64)
    i = torch.randint(0, 101, (8, 48))

    def loss():
        x = words(i) + place(torch.arange(48))
        q, k, v = (p.reshape(8, 48, 4, 16).transpose(1, 2) for p in joined(norm(x)).chunk(3, -1))
        x = x + out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(8, 48, 64))
        x = x + back(F.gelu(wide(norm(x))))
        return F.cross_entropy((x @ words.weight.T)[:, :-1].reshape(-1, 101), i[:, 1:].reshape(-1))

    return nn.ModuleList([words, place, norm, joined, out, wide, back]), loss


@network(lambda p: optim.NAdam(p, lr=1e-3))
def transformer():
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
    m, head = nn.TransformerEncoder(layer, 2), nn.Linear(64, 5)
    x, y = torch.randn(8, 40, 64), classes(8, 5)
    return nn.ModuleList([m, head]), lambda: F.cross_entropy(head(m(x).mean(1)), y)


@network(lambda p: optim.Adam(p, lr=1e-3, amsgrad=True))
def lstm():
    m, head = nn.LSTM(48, 64, 2, batch_first=True, bidirectional=True, dropout=0.2), nn.Linear(128, 5)
    x, y = torch.randn(64, 12, 48), classes(64, 5)
    return nn.ModuleList([m, head]), lambda: F.cross_entropy(head(m(x)[0][:, -1]), y)


@network(lambda p: optim.Adamax(p, lr=1e-3))
def gru():
    m, head = nn.GRU(48, 80, batch_first=True), nn.Linear(80, 1)
    x, y = torch.randn(64, 12, 48), torch.randn(64, 1)
    return nn.ModuleList([m, head]), lambda: F.huber_loss(head(m(x)[1][0]), y)


@network(lambda p: optim.Adagrad(p, lr=1e-2))
def rnn():
    m, head = nn.RNN(32, 64, nonlinearity="relu"), nn.Linear(64, 20)
    x, y = torch.randn(15, 32, 32), torch.randint(1, 20, (32, 5))
    lengths = torch.full((32,), 15, dtype=torch.int64), torch.full((32,), 5, dtype=torch.int64)
    return nn.ModuleList([m, head]), lambda: F.ctc_loss(head(m(x)[0]).log_softmax(-1), y, *lengths)


@network(lambda p: optim.RAdam(p, lr=1e-2))
def graph():
    first, second = nn.Linear(32, 64), nn.Linear(128, 7)
    x, y = torch.randn(500, 32), classes(500, 7)
    source, target = torch.randint(0, 500, (4000,)), torch.randint(0, 500, (4000,))

    def loss():
        h = first(x).relu()
        summed = torch.zeros_like(h).index_add(0, target, h[source])
        mean = torch.zeros_like(h).scatter_reduce(0, target[:, None].expand(-1, 64), h[source], "mean")
        spread = torch.zeros_like(h).scatter_add(0, source[:, None].expand(-1, 64), h[target])
        return F.cross_entropy(second(torch.cat([summed + mean, spread.tanh()], 1)), y)

    return nn.ModuleList([first, second]), loss


@network(lambda p: optim.ASGD(p, lr=1e-2))
def bags():
    m, table, head = nn.EmbeddingBag(50, 32, mode="mean"), nn.Embedding(50, 32, padding_idx=0), nn.Linear(64, 4)
    i, y = torch.randint(0, 50, (200, 12)), classes(200, 4)
    return nn.ModuleList([m, table, head]), lambda: F.cross_entropy(head(torch.cat([m(i), table(i).amax(1)], 1)), y)


@network(lambda p: optim.SGD(p, lr=1e-3))
def autoencoder():
    m = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(), nn.Conv2d(32, 64, 4, 2, 1))
    back = nn.Sequential(
        nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid()
    )
    x = torch.rand(8, 3, 32, 32)

    def loss():
        mean, spread = m(x).chunk(2, 1)
        found = back(mean + torch.randn_like(mean) * (spread / 2).exp())
        return F.binary_cross_entropy(found, x) + (mean.square() + spread.exp() - spread - 1).mean()

    return nn.ModuleList([m, back]), loss


@network(lambda p: optim.Rprop(p, lr=1e-3))
def separable():
    m = nn.Sequential(
        nn.Conv2d(8, 32, 1), nn.GroupNorm(4, 32), nn.Hardswish(), nn.Conv2d(32, 32, 5, padding=2, groups=32),
        nn.PReLU(), nn.AvgPool2d(2), nn.Conv2d(32, 64, 3, groups=4), nn.InstanceNorm2d(64, affine=True), nn.Flatten(),
        nn.Linear(64 * 36, 3),
    )  # fmt: skip
    x, y = torch.randn(8, 8, 16, 16), torch.randn(8, 3)
    return m, lambda: F.smooth_l1_loss(m(x), y)


@network(lambda p: optim.Adafactor(p, lr=1e-2))
def volumes():
    m = nn.Sequential(nn.Conv3d(2, 16, 3), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(16 * 64, 4))
    line = nn.Sequential(nn.Conv1d(4, 32, 5), nn.ELU(), nn.AdaptiveMaxPool1d(8), nn.Flatten(), nn.Linear(256, 4))
    x, z, y = torch.randn(8, 2, 10, 10, 10), torch.randn(8, 4, 200), torch.randn(8, 4)
    return nn.ModuleList([m, line]), lambda: F.mse_loss(m(x) + line(z), y)


@network(lambda p: optim.LBFGS(p, lr=0.1, max_iter=3))
def process():
    points = nn.ParameterList([nn.Parameter(torch.randn(60, 3)), nn.Parameter(torch.zeros(3))])
    y = torch.randn(60)

    def loss():
        scaled = points[0] * points[1].exp()
        kernel = torch.exp(-torch.cdist(scaled, scaled).square()) + 0.1 * torch.eye(60)
        factor = torch.linalg.cholesky(kernel)
        return y @ torch.cholesky_solve(y[:, None], factor)[:, 0] / 60 + factor.diagonal().log().mean()

    return points, loss


@network(lambda p: optim.Muon(p, lr=1e-2))
def pictures():
    m = nn.ParameterList(
        [nn.Parameter(torch.eye(2, 3)), nn.Parameter(torch.randn(40, 40)), nn.Parameter(torch.randn(40, 40))]
    )
    x, y = torch.randn(4, 2, 40, 40), torch.randn(4, 2, 40, 40)

    def loss():
        grid = F.affine_grid(m[0].expand(4, 2, 3), (4, 2, 40, 40), align_corners=False)
        moved = F.grid_sample(m[1] @ x, grid, align_corners=False)
        small = F.interpolate(moved, scale_factor=0.5, mode="bilinear", align_corners=False)
        return F.mse_loss(F.pixel_shuffle(small.repeat(1, 4, 1, 1), 2) @ m[2], y)

    return m, loss


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args(arguments)
    torch.use_deterministic_algorithms(True)
    failed = 0
    for name in options.names or NETWORKS:
        found: dict[str, list[int]] = {}
        for threads in options.threads:
            torch.set_num_threads(threads)
            for _ in range(options.runs):
                found.setdefault(trained(name, options.device, options.steps), []).append(threads)
        print(f"{name:12} {'one digest ' + next(iter(found)) if len(found) == 1 else found}", flush=True)
        failed += len(found) > 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
