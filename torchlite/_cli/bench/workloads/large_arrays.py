"""Large-array workloads: single ops on a few million elements, bound by memory and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context, Rows


def large(c: Context) -> Rows:
    T, F = c.T, c.T.nn.functional
    rows, columns = c.size(4096, 16), c.size(1024, 64)
    x, y = c.normal(rows, columns), c.normal(rows, columns)
    few, index = x[: rows // 16], c.integers(columns, rows, 64)
    chosen, weight = c.integers(rows, rows), c.normal(columns)
    with T.no_grad():
        yield "big.add", lambda: x + y
        yield "big.exp", lambda: x.exp()
        yield "big.gelu", lambda: F.gelu(x)
        yield "big.where", lambda: T.where(x > 0, x, y)
        yield "big.chain", lambda: ((x * 2 + y).tanh() * x - y).relu()
        yield "big.softmax", lambda: x.softmax(1)
        yield "big.layernorm", lambda: F.layer_norm(x, (columns,))
        yield "big.rmsnorm", lambda: F.rms_norm(x, (columns,), weight)
        yield "big.sum", lambda: x.sum(1)
        yield "big.mean0", lambda: x.mean(0)
        yield "big.var", lambda: x.var(1)
        yield "big.max", lambda: x.max(1)
        yield "big.cumsum", lambda: x.cumsum(1)
        yield "big.topk", lambda: few.topk(10)
        yield "big.sort", lambda: few.sort(1)
        yield "big.transpose", lambda: x.t().contiguous()
        yield "big.cat", lambda: T.cat([x, y], 1)
        yield "big.gather", lambda: x.gather(1, index)
        yield "big.index_select", lambda: x.index_select(0, chosen)
        yield "big.dropout", lambda: F.dropout(x, 0.1)
        square = c.normal(columns, columns)
        yield "big.gemm1024", lambda: square @ square
    yield from backward(c, rows, columns)


def backward(c: Context, rows: int, columns: int) -> Rows:
    """Forward and backward: the gradient in a fixed direction."""
    F = c.T.nn.functional
    x, direction = c.normal(rows, columns, requires_grad=True), c.normal(rows, columns)
    weight, labels = c.normal(columns, requires_grad=True), c.integers(columns, rows)

    def both(f: Callable[[], Any], seed: Any = direction) -> Callable[[], Any]:
        def call() -> None:
            x.grad = weight.grad = None
            f().backward(seed)

        return call

    yield "big.gelu_grad", both(lambda: F.gelu(x))
    yield "big.softmax_grad", both(lambda: x.softmax(1))
    yield "big.layernorm_grad", both(lambda: F.layer_norm(x, (columns,), weight, weight))
    yield "big.cross_entropy_grad", both(lambda: F.cross_entropy(x, labels), None)
    table, chosen, step = (
        c.normal(rows * 8, 64, requires_grad=True),
        c.integers(rows * 8, rows * 4),
        c.normal(rows * 4, 64),
    )

    def embed() -> None:
        table.grad = None
        F.embedding(chosen, table).backward(step)

    yield "big.embedding_grad", embed
