"""Small-tensor workloads, bound by the interpreter: ops on 4x4 tensors, and networks of a few small layers."""

from __future__ import annotations

from .context import Context, Rows


def small(c: Context) -> Rows:
    x, y = c.normal(4, 4), c.normal(4, 4)
    g, h = c.normal(4, 4, requires_grad=True), c.normal(4, 4, requires_grad=True)
    yield "small.add", lambda: x + y
    yield "small.add_grad", lambda: g + h
    yield "small.matmul", lambda: x @ y
    yield "small.matmul_grad", lambda: g @ h
    yield "small.sum", lambda: x.sum(0)
    yield "small.sum_grad", lambda: g.sum(0)
    yield "small.exp_grad", lambda: g.exp()
    yield "small.reshape_grad", lambda: g.reshape(2, 8)
    yield "small.getitem_grad", lambda: g[1:3]
    yield "small.fwdbwd", lambda: (g * h + g).tanh().sum().backward()


def mlp(c: Context) -> Rows:
    nn = c.T.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(c.device)
    x, y = c.normal(32, 64), c.integers(10, 32)
    loss = nn.CrossEntropyLoss()
    yield "mlp.train", c.step(model, (x,), lambda out: loss(out, y), c.T.optim.Adam(model.parameters(), lr=1e-3))
    with c.T.no_grad():
        yield "mlp.infer", lambda: model(x)


def lenet(c: Context) -> Rows:
    nn = c.T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10),
    ).to(c.device)  # fmt: skip
    x, y = c.normal(c.size(32), 1, 28, 28), c.integers(10, c.size(32))
    loss = nn.CrossEntropyLoss()
    yield "lenet.train", c.step(model, (x,), lambda out: loss(out, y), c.T.optim.Adam(model.parameters(), lr=1e-3))


def clip(c: Context) -> Rows:
    T = c.T
    parameters = [c.normal(256, requires_grad=True) for _ in range(c.size(200))]
    for p in parameters:
        p.grad = c.normal(256)
    yield "clip_grad_norm", lambda: T.nn.utils.clip_grad_norm_(parameters, 1.0)


def sparse(c: Context) -> Rows:
    """Sparse matrix with ten elements a row, and dense ones of 64 columns."""
    T, n, per, width = c.T, c.size(10_000), 10, 64
    rows = T.arange(n, device=c.device).repeat_interleave(per)
    columns = T.arange(n * per, device=c.device) * 7919 % n
    matrix = T.sparse_coo_tensor(T.stack([rows, columns]), c.normal(n * per), (n, n)).coalesce().to_sparse_csr()
    dense, turned = c.normal(n, width), c.normal(width, n)
    yield "sparse.mm", lambda: T.sparse.mm(matrix, dense)
    yield "sparse.sampled_addmm", lambda: T.sparse.sampled_addmm(matrix, dense, turned)
    values, factor = matrix.clone().requires_grad_(), dense.clone().requires_grad_()

    def step() -> None:
        T.sparse.mm(values, factor).sum().backward()
        values.grad = factor.grad = None

    yield "sparse.mm_grad", step
