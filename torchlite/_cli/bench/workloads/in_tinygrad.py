"""tinygrad versions of the workloads, under TinyJit."""

from __future__ import annotations

import importlib
from typing import Any

from .context import Context, Rows


def mlp(c: Context) -> Rows:
    tinygrad, Tensor = c.T, c.T.Tensor
    nn: Any = importlib.import_module("tinygrad.nn")
    layers = [nn.Linear(64, 64), Tensor.relu, nn.Linear(64, 64), Tensor.relu, nn.Linear(64, 10)]
    parameters = [p for layer in layers if isinstance(layer, nn.Linear) for p in nn.state.get_parameters(layer)]
    x, y = Tensor.randn(32, 64).realize(), Tensor.randint(32, high=10).realize()
    optimizer = nn.optim.Adam(parameters, lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = x.sequential(layers).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    train, infer = tinygrad.TinyJit(step), tinygrad.TinyJit(lambda x: x.sequential(layers).realize())
    yield "mlp.train", train
    yield "mlp.infer", lambda: infer(x)


def large(c: Context) -> Rows:
    Tensor = c.T.Tensor
    rows, columns = c.size(4096, 16), c.size(1024, 64)
    x, y = Tensor.randn(rows, columns).realize(), Tensor.randn(rows, columns).realize()
    square = Tensor.randn(columns, columns).realize()
    functions = {
        "add": (lambda x, y: x + y, (x, y)),
        "exp": (lambda x: x.exp(), (x,)),
        "where": (lambda x, y: (x > 0).where(x, y), (x, y)),
        "chain": (lambda x, y: ((x * 2 + y).tanh() * x - y).relu(), (x, y)),
        "softmax": (lambda x: x.softmax(1), (x,)),
        "layernorm": (lambda x: x.layernorm(1), (x,)),
        "sum": (lambda x: x.sum(1), (x,)),
        "var": (lambda x: x.var(1), (x,)),
        "transpose": (lambda x: x.T.contiguous(), (x,)),
        "cat": (lambda x, y: x.cat(y, dim=1), (x, y)),
        "gemm1024": (lambda a: a @ a, (square,)),
    }
    for name, (function, operands) in functions.items():
        call = c.T.TinyJit(lambda *arguments, function=function: function(*arguments).realize())
        yield f"big.{name}", lambda call=call, operands=operands: call(*operands)
