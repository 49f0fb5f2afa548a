"""The workloads of `library_comparison.py`. It runs this file under each library's interpreter; only Python is needed
beside the library: `python library_workloads.py LIBRARY FOLDER THREADS SECONDS` prints {workload: seconds} as JSON.

Small ops and products are called as a user of the library calls them. Networks are compiled where the library's own
guide says so: `jax.jit`, `TinyJit`, a session of ONNX Runtime.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SIZES = ((64, 64), (64, 64), (64, 10))
BATCH, SQUARE, LARGE = 32, 1024, (4096, 1024)
Calls = Iterator[tuple[str, Callable[[], Any]]]

# Programs from the start of Python to the prediction of a small network.
_TORCH_COLD_START = """
import {module} as torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
with torch.no_grad():
    print(model(torch.ones(1, 64)).argmax(1).item())
"""
_JAX_COLD_START = """
import jax, jax.numpy as jnp
w, v = jax.random.normal(jax.random.key(0), (64, 64)), jax.random.normal(jax.random.key(1), (64, 10))
print(int(jax.jit(lambda x: jnp.argmax(jax.nn.relu(x @ w) @ v, 1))(jnp.ones((1, 64)))[0]))
"""
_TINYGRAD_COLD_START = """
from tinygrad import Tensor, nn
first, second = nn.Linear(64, 64), nn.Linear(64, 10)
print(second(first(Tensor.ones(1, 64)).relu()).argmax(1).item())
"""
_ONNXRUNTIME_COLD_START = """
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
print(session.run(None, {"x": np.ones((32, 64), np.float32)})[0].argmax(1)[0])
"""
COLD_STARTS = {
    "torchlite": _TORCH_COLD_START.format(module="torchlite"),
    "torch": _TORCH_COLD_START.format(module="torch"),
    "jax": _JAX_COLD_START,
    "tinygrad": _TINYGRAD_COLD_START,
    "onnxruntime": _ONNXRUNTIME_COLD_START,
}


def with_torch(torch: Any) -> Calls:
    """PyTorch's API: torchlite and PyTorch."""
    x, y, square = torch.randn(4, 4), torch.randn(4, 4), torch.randn(SQUARE, SQUARE)
    yield "op", lambda: x + y
    yield "product", lambda: square @ square
    large = torch.randn(LARGE)
    yield "gelu", lambda: torch.nn.functional.gelu(large)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(*SIZES[0]), nn.ReLU(), nn.Linear(*SIZES[1]), nn.ReLU(), nn.Linear(*SIZES[2]))
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    data, labels = torch.randn(BATCH, SIZES[0][0]), torch.randint(0, SIZES[-1][1], (BATCH,))

    def train() -> None:
        optimizer.zero_grad()
        loss(model(data), labels).backward()
        optimizer.step()

    def predict() -> Any:
        with torch.no_grad():
            return model(data)

    yield "training", train
    yield "prediction", predict


def with_jax(jax: Any) -> Calls:
    jnp, tree, keys = jax.numpy, jax.tree_util.tree_map, iter(jax.random.split(jax.random.key(0), 20))

    def normal(*shape: int) -> Any:
        return jax.random.normal(next(keys), shape, jnp.float32)

    x, y, square = normal(4, 4), normal(4, 4), normal(SQUARE, SQUARE)
    yield "op", lambda: x + y
    yield "product", lambda: square @ square
    large, gelu = normal(*LARGE), jax.jit(lambda x: jax.nn.gelu(x, approximate=False))
    yield "gelu", lambda: gelu(large)
    weights = [(normal(a, b) / a**0.5, jnp.zeros(b)) for a, b in SIZES]
    data, labels = normal(BATCH, SIZES[0][0]), jax.random.randint(next(keys), (BATCH,), 0, SIZES[-1][1])

    def forward(weights: Any, x: Any) -> Any:
        for w, b in weights[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = weights[-1]
        return x @ w + b

    def loss(weights: Any) -> Any:
        return -jax.nn.log_softmax(forward(weights, data))[jnp.arange(BATCH), labels].mean()

    def adam(weights: Any, first: Any, second: Any, count: Any) -> Any:
        gradients, count = jax.grad(loss)(weights), count + 1
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

        def changed(w: Any, m: Any, v: Any) -> Any:
            return w - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return tree(changed, weights, first, second), first, second, count

    zeros, step = tree(jnp.zeros_like, weights), jax.jit(adam)
    state = [(weights, zeros, zeros, jnp.zeros(()))]

    def train() -> Any:
        state[0] = step(*state[0])
        return state[0]

    yield "training", train
    predict = jax.jit(forward)
    yield "prediction", lambda: predict(weights, data)


def with_tinygrad(tinygrad: Any) -> Calls:
    Tensor, nn, jit = tinygrad.Tensor, importlib.import_module("tinygrad.nn"), tinygrad.TinyJit
    x, y = Tensor.randn(4, 4).realize(), Tensor.randn(4, 4).realize()
    yield "op", lambda: (x + y).realize()
    square, product = Tensor.randn(SQUARE, SQUARE).realize(), jit(lambda x: (x @ x).realize())
    yield "product", lambda: product(square)
    large, gelu = Tensor.randn(LARGE).realize(), jit(lambda x: x.gelu().realize())  # tanh's approximation
    yield "gelu", lambda: gelu(large)
    layers = [nn.Linear(*SIZES[0]), Tensor.relu, nn.Linear(*SIZES[1]), Tensor.relu, nn.Linear(*SIZES[2])]
    parameters = [p for layer in layers if isinstance(layer, nn.Linear) for p in nn.state.get_parameters(layer)]
    data, labels = Tensor.randn(BATCH, SIZES[0][0]).realize(), Tensor.randint(BATCH, high=SIZES[-1][1]).realize()
    optimizer = nn.optim.Adam(parameters, lr=1e-3)

    def train() -> Any:
        optimizer.zero_grad()
        loss = data.sequential(layers).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    yield "training", jit(train)
    predict = jit(lambda x: x.sequential(layers).realize())
    yield "prediction", lambda: predict(data)


def with_onnxruntime(onnxruntime: Any, folder: str, threads: int) -> Calls:
    """Sessions of the files that `library_comparison.py` has written; the inputs are ndarrays."""
    numpy: Any = importlib.import_module("numpy")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    shapes = {"op": ((4, 4), (4, 4)), "product": ((SQUARE, SQUARE),), "gelu": (LARGE,), "mlp": ((BATCH, SIZES[0][0]),)}
    for name, inputs in shapes.items():
        path = os.path.join(folder, f"{name}.onnx")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        given = [numpy.random.default_rng(0).standard_normal(shape, numpy.float32) for shape in inputs]
        feed = dict(zip((i.name for i in session.get_inputs()), given, strict=True))
        workload = "prediction" if name == "mlp" else name
        yield workload, lambda session=session, feed=feed: session.run(None, feed)


def measure(call: Callable[[], Any], wait: Callable[[Any], Any], seconds: float) -> float:
    """Return the least time of a call, in seconds. Calls are repeated to 2 ms; `seconds` limits the measurement."""
    for _ in range(5):
        wait(call())
    start = time.perf_counter()
    wait(call())
    repeat = max(1, int(2e-3 / (time.perf_counter() - start)))
    least, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        for _ in range(repeat - 1):
            call()
        wait(call())
        least = min(least, (time.perf_counter() - start) / repeat)
    return least


def main(library: str, folder: str, threads: int, seconds: float) -> None:
    """Print the seconds of each workload."""
    if hasattr(os, "sched_setaffinity"):  # JAX and tinygrad have no number of threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module: Any = importlib.import_module(library)
    wait: Callable[[Any], Any] = lambda result: result
    if library == "onnxruntime":
        calls = with_onnxruntime(module, folder, threads)
    elif library == "jax":
        calls, wait = with_jax(module), module.block_until_ready
    elif library == "tinygrad":
        device = module.Device[module.Device.DEFAULT]
        calls, wait = with_tinygrad(module), lambda _: device.synchronize()
    else:
        module.set_num_threads(threads)
        calls = with_torch(module)
    print(json.dumps({name: measure(call, wait, seconds) for name, call in calls}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
