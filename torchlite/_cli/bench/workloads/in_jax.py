"""JAX versions of the workloads: single ops eagerly, networks and large ops under `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context, Rows


def arrays(c: Context) -> Callable[..., Any]:
    """Return `normal(*shape)`, with other numbers in each call."""
    keys = iter(c.T.random.split(c.T.random.key(0), 100))
    return lambda *shape: c.T.random.normal(next(keys), shape, c.T.numpy.float32)


def small(c: Context) -> Rows:
    normal = arrays(c)
    x, y = normal(4, 4), normal(4, 4)
    yield "small.add", lambda: x + y
    yield "small.matmul", lambda: x @ y
    yield "small.sum", lambda: x.sum(0)


def mlp(c: Context) -> Rows:
    jax, normal = c.T, arrays(c)
    jnp, tree = jax.numpy, jax.tree_util.tree_map
    sizes = (64, 64), (64, 64), (64, 10)
    weights = [(normal(a, b) / a**0.5, jnp.zeros(b)) for a, b in sizes]
    x, y = normal(32, 64), jax.random.randint(jax.random.key(1), (32,), 0, 10)

    def forward(weights: Any, x: Any) -> Any:
        for i, (w, b) in enumerate(weights):
            x = x @ w + b
            x = x if i == len(sizes) - 1 else jax.nn.relu(x)
        return x

    def loss(weights: Any) -> Any:
        return -jax.nn.log_softmax(forward(weights, x))[jnp.arange(32), y].mean()

    def adam(weights: Any, first: Any, second: Any, count: Any) -> Any:
        gradients, count = jax.grad(loss)(weights), count + 1
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        weights = tree(
            lambda w, m, v: w - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8),
            weights, first, second,
        )  # fmt: skip
        return weights, first, second, count

    step, zeros = jax.jit(adam), tree(jnp.zeros_like, weights)
    state = [(weights, zeros, zeros, jnp.zeros(()))]

    def train() -> Any:
        state[0] = step(*state[0])
        return state[0]

    yield "mlp.train", train
    infer = jax.jit(forward)
    yield "mlp.infer", lambda: infer(weights, x)


def large(c: Context) -> Rows:
    jax, normal = c.T, arrays(c)
    jnp, rows, columns = jax.numpy, c.size(4096, 16), c.size(1024, 64)
    x, y, square = normal(rows, columns), normal(rows, columns), normal(columns, columns)
    few, index = x[: rows // 16], jax.random.randint(jax.random.key(1), (rows, 64), 0, columns)

    def normalised(x: Any) -> Any:
        return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)

    functions: dict[str, tuple[Callable, tuple]] = {
        "add": (lambda x, y: x + y, (x, y)),
        "exp": (jnp.exp, (x,)),
        "gelu": (lambda x: jax.nn.gelu(x, approximate=False), (x,)),
        "where": (lambda x, y: jnp.where(x > 0, x, y), (x, y)),
        "chain": (lambda x, y: jax.nn.relu(jnp.tanh(x * 2 + y) * x - y), (x, y)),
        "softmax": (lambda x: jax.nn.softmax(x, 1), (x,)),
        "layernorm": (normalised, (x,)),
        "sum": (lambda x: x.sum(1), (x,)),
        "mean0": (lambda x: x.mean(0), (x,)),
        "var": (lambda x: x.var(1, ddof=1), (x,)),
        "cumsum": (lambda x: jnp.cumsum(x, 1), (x,)),
        "topk": (lambda x: jax.lax.top_k(x, 10), (few,)),
        "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), (few,)),
        "cat": (lambda x, y: jnp.concatenate([x, y], 1), (x, y)),
        "gather": (lambda x, i: jnp.take_along_axis(x, i, 1), (x, index)),
        "gemm1024": (lambda a: a @ a, (square,)),
    }
    for name, (function, operands) in functions.items():
        call = jax.jit(function)
        yield f"big.{name}", lambda call=call, operands=operands: call(*operands)
