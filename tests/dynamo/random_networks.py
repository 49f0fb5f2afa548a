"""Random networks of convolutions, norms, products, views and elementwise ops, written to files and loaded."""

from __future__ import annotations

import io

import numpy as np

import torchlite as torch

F = torch.nn.functional
nn = torch.nn
SHAPE = (2, 4, 8, 8)  # of all values
FORMATS = ("onnx", "pt2", "torchscript")

OPS = {
    "add": lambda net, x, y, n: x + y, "mul": lambda net, x, y, n: x * y, "sub": lambda net, x, y, n: x - y * 0.7,
    "relu": lambda net, x, y, n: torch.relu(x), "tanh": lambda net, x, y, n: torch.tanh(x),
    "silu": lambda net, x, y, n: torch.sigmoid(x) * x, "hardswish": lambda net, x, y, n: F.hardswish(x),
    "gelu": lambda net, x, y, n: F.gelu(x), "leaky_relu": lambda net, x, y, n: F.leaky_relu(x, 0.1),
    "exp": lambda net, x, y, n: torch.exp(-x.abs()), "sqrt": lambda net, x, y, n: torch.sqrt(x.abs() + 1),
    "clamp": lambda net, x, y, n: torch.clamp(x, -1.0, 1.0) + 0.3, "maximum": lambda net, x, y, n: torch.maximum(x, y),
    "power": lambda net, x, y, n: 0.5 * torch.abs(x) ** 1.5,
    "transpose": lambda net, x, y, n: x.transpose(2, 3),
    "permute": lambda net, x, y, n: x.permute(0, 2, 3, 1).permute(0, 3, 1, 2),
    "reshape": lambda net, x, y, n: x.flatten(2).transpose(1, 2).reshape(2, 64, 4).transpose(1, 2).reshape(SHAPE),
    "cat": lambda net, x, y, n: torch.cat([x[:, :2], y[:, 2:]], 1),
    "stack": lambda net, x, y, n: torch.stack([x, y]).amax(0),
    "chunk": lambda net, x, y, n: x.chunk(2, 1)[1].repeat(1, 2, 1, 1),
    "flip": lambda net, x, y, n: x.flip(3), "repeat": lambda net, x, y, n: x[:, :, ::2].repeat_interleave(2, 2),
    "expand": lambda net, x, y, n: x.sum(1, keepdim=True).expand(SHAPE),
    "pad": lambda net, x, y, n: F.pad(x, (1, 1, 0, 0))[..., 1:-1],
    "write": lambda net, x, y, n: x.clone().mul_(2.0).add_(y),
    "linear": lambda net, x, y, n: net.linears[n % 3](x), "norm": lambda net, x, y, n: net.norm(x),
    "convolution": lambda net, x, y, n: net.convolutions[n % 3](x),
    "batch_norm": lambda net, x, y, n: net.batch_norms[n % 2](net.convolutions[n % 3](x)),
    "batch_norm_relu": lambda net, x, y, n: torch.relu(net.batch_norms[n % 2](net.convolutions[n % 3](x))),
    "product": lambda net, x, y, n: torch.matmul(x, y.transpose(-1, -2)) * 0.1,
    "softmax": lambda net, x, y, n: torch.softmax(x, -1),
    "gate": lambda net, x, y, n: x.mean((2, 3), keepdim=True) * y,
    "channels": lambda net, x, y, n: x * net.column + net.row,
    "max_pool": lambda net, x, y, n: F.max_pool2d(x, 3, 1, 1),
    "avg_pool": lambda net, x, y, n: F.avg_pool2d(x, 3, 1, 1),
    "interpolate": lambda net, x, y, n: F.interpolate(x[:, :, :4, :4], scale_factor=2),
}  # fmt: skip


class RandomNetwork(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.linears = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.convolutions = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1, groups=groups) for groups in (1, 4, 2)])
        self.batch_norms = nn.ModuleList([nn.BatchNorm2d(4) for _ in range(2)])
        for norm in self.batch_norms:
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
        self.norm = nn.LayerNorm(8)
        self.row, self.column = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(4, 1, 1))
        names = list(OPS)
        count = int(rng.integers(3, 40))
        self.plan = [(names[rng.integers(len(names))], *map(int, rng.integers(1 << 30, size=3))) for _ in range(count)]

    def forward(self, x, y):
        values = [x, y]
        for at, (name, first, second, number) in enumerate(self.plan):
            a = values[first % len(values)] if first % 3 else values[-1]
            made = OPS[name](self, a, values[second % len(values)], number)
            values.append(torch.clamp(made, -50.0, 50.0) if at % 5 == 4 else made)
        out = values[-1] + values[-2] + values[-3]
        return (out, values[len(values) // 2]) if len(values) % 3 == 0 else out


def inputs(seed: int) -> tuple:
    torch.manual_seed(seed + 1)
    return torch.randn(SHAPE), torch.randn(SHAPE)


def load(module, args, format):
    """The module, written to a file's bytes and loaded."""
    held = io.BytesIO()
    if format == "onnx":
        return torch.onnx.load(torch.onnx.export(module, args).to_bytes())
    if format == "pt2":
        torch.export.save(torch.export.export(module, args), held)
    else:
        torch.jit.save(torch.jit.trace(module, args, check_trace=False), held)
    held.seek(0)
    return torch.export.load(held).module() if format == "pt2" else torch.jit.load(held)


def difference(seed: int, format: str) -> tuple[float, int]:
    """The largest difference between an optimized call and one without, as a share of the largest value, and the
    number of replays.
    """
    from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS

    module = RandomNetwork(seed).eval()
    with torch.no_grad():
        loaded = load(module, inputs(seed), format)
        for _ in range(4):
            loaded(*inputs(seed))
        found = torch.utils._pytree.tree_leaves(loaded(*inputs(seed + 1)))
        with torch.jit.optimized_execution(False):
            wanted = torch.utils._pytree.tree_leaves(loaded(*inputs(seed + 1)))
    (function,) = [f for f in COMPILED_FUNCTIONS if getattr(f, "module", lambda: None)() is loaded]
    gap = max(((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in zip(found, wanted, strict=True))
    return gap, function.replays
