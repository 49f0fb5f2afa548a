"""Ops that a program adds with torch.library are one node, or one statement, of what traces it."""

from __future__ import annotations

import io

import pytest

import torchlite as torch
from torchlite.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(scope="module")
def ops():
    @torch.library.custom_op("traced_ops::scaled", mutates_args=())
    def scaled(x: torch.Tensor, k: float = 2.0) -> torch.Tensor:
        return x * k

    @scaled.register_fake
    def _(x, k=2.0):
        return torch.empty_like(x)

    @torch.library.custom_op("traced_ops::both", mutates_args=())
    def both(xs: list[torch.Tensor], n: int) -> tuple[torch.Tensor, torch.Tensor]:
        return xs[0] * n, xs[1] + n

    @torch.library.custom_op("traced_ops::written", mutates_args={"x"})
    def written(x: torch.Tensor) -> None:
        x.add_(1)

    return torch.ops.traced_ops


def cast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.ops.traced_ops.scaled(x) @ x


def test_make_fx_and_export_within_autocast(ops):
    x = torch.arange(4.0).view(2, 2)
    targets = ["traced_ops.scaled.default", "aten._to_copy.default", "aten._to_copy.default", "aten.mm.default"]
    made = make_fx(cast)(x)
    assert [str(n.target) for n in made.graph.nodes if n.op == "call_function"] == targets
    assert torch.equal(made(x + 1), cast(x + 1))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = make_fx(lambda x: ops.scaled(x))(x)
    assert [str(n.target) for n in made.graph.nodes if n.op == "call_function"] == targets[:1]

    class Casting(torch.nn.Module):
        def forward(self, x):
            return cast(x)

    program = torch.export.export(Casting(), (x,))
    assert torch.equal(program.module()(x + 1), cast(x + 1))


def test_jit_trace(ops):
    """As PyTorch writes them: all arguments, defaults among them."""
    x = torch.arange(4.0).view(2, 2)

    def program(x):
        first, second = ops.both([ops.scaled(x), ops.scaled(x, 3.0)], x.shape[0])
        ops.written(second)
        return first, second

    traced = torch.jit.trace(program, (x,))
    for call in ("ops.traced_ops.scaled(x, 2.0)", "ops.traced_ops.scaled(x, 3.0)", "ops.traced_ops.both([_0, _1], "):
        assert call in traced.code
    other = torch.randn(3, 2)
    assert all(map(torch.equal, traced(other), program(other)))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    assert all(map(torch.equal, torch.jit.load(file)(other), program(other)))
