"""Independent matrix products, fused horizontally."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite.nn import functional as F
from torchlite_backends.numpy.blas import can_limit

JOINS = table_of(torch.device("cpu")).backend.engine() == "numpy" and can_limit()


def replayed(function, *given):
    """The text of the replay of a function of copies of some tensors, whose results are those of the function."""
    frame = CompiledFunction(function, "together", fullgraph=True)
    for _ in range(3):
        want, found = function(*(x.clone() for x in given)), frame(*(x.clone() for x in given))
    assert frame.replays == 1
    for a, b in zip(found, want, strict=True):
        assert a.stride() == b.stride() and a.dtype is b.dtype
        assert torch.equal(a, b) if JOINS else torch.allclose(a, b, rtol=1e-5, atol=1e-5)
    return next(iter(frame.variants.values()))[0].replay.forward.text


def gradients(model, dtype=torch.float32):
    torch.manual_seed(0)
    model = model.to(dtype)

    def step(x):
        return torch.autograd.grad(model(x).square().sum(), tuple(model.parameters()))

    return step


def random(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("wide", [(300, 200, 200), (600, 130, 300)])
def test_gradients_of_a_layer_share_a_call(threads, dtype, wide):
    rows, given, made = wide
    step = gradients(nn.Sequential(nn.Linear(given, made), nn.Tanh(), nn.Linear(made, given)), dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        text = replayed(step, random(2, rows, given, dtype=dtype))
    finally:
        torch.set_num_threads(before)
    assert text.count("= linear_input_grad_linear_weight_grad_linear_bias_grad(") == JOINS
    assert text.count("= linear_weight_grad_linear_bias_grad(") == JOINS  # the input needs no gradient


def test_layers_of_one_input_share_a_call_before_their_views():
    layers = [nn.Linear(256, 256, bias=bias) for bias in (True, False, True)]

    def attended(x):
        q, k, v = (layer(x).view(*x.shape[:2], 4, 64).transpose(1, 2) for layer in layers)
        return (F.scaled_dot_product_attention(q, k, v).detach(),)

    text = replayed(attended, random(2, 128, 256).transpose(0, 1))
    assert text.count("= linear_linear_linear(") == JOINS


def test_dependent_layers_are_not_fused():
    layers = [nn.Linear(256, 256) for _ in range(3)]

    def stacked(x):
        return (layers[2](layers[1](layers[0](x).view(-1, 256))).detach(),)

    assert "= linear_linear" not in replayed(stacked, random(256, 256))


def test_writes_between_products_prevent_fusion():
    first, second = nn.Linear(256, 256), nn.Linear(256, 256)

    def written(x):
        with torch.no_grad():
            before = first(x)
            x.add_(1)
            return before, second(x), x

    assert "= linear_linear" not in replayed(written, random(256, 256))


@pytest.mark.parametrize("shape", [(4, 8), (0, 256), (1, 256), (256,)])
def test_small_ones_are_computed_apart(shape):
    first, second = nn.Linear(shape[-1], 256), nn.Linear(shape[-1], 256)

    def both(x):
        return first(x).detach(), second(x).detach()

    assert "= linear_linear" not in replayed(both, random(*shape))
