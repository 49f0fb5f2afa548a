"""NumPy's LSTM and GRU layers against the composites, for batches in one part and in several."""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite_backends.numpy import lstm

CPU = table_of(torch.device("cpu"))


def arrays(*shapes, dtype="float64"):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) * 0.3 for shape in shapes]


def weights(gates, hidden, features, biased, dtype="float64"):
    w = arrays((gates * hidden, features), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,), dtype=dtype)
    return w if biased else [*w[:2], None, None]


def close(found, wanted):
    for mine, want in zip(found, wanted, strict=True):
        assert (mine is None) == (want is None)
        if mine is not None:
            np.testing.assert_allclose(mine, want, rtol=1e-9, atol=1e-10)


SIZES = [
    (1, 1, 1, 1),
    (3, 5, 4, 6),
    (2, 1, 30, 7),
    (18, 33, 20, 9),
    (33, 2, 3, 2),
    (2, 70, 190, 5),
    (3, 32, 220, 4),
    (11, 33, 190, 3),
]
NOBODY = (3, 0, 190, 4)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [*SIZES, NOBODY])
def test_lstm(size, reverse, biased):
    steps, batch, hidden, features = size
    x, h, c, g, gh, gc = arrays(
        (steps, batch, features), *[(batch, hidden)] * 2, (steps, batch, hidden), *[(batch, hidden)] * 2
    )
    given = x, h, c, *weights(4, hidden, features, biased)
    mine = CPU._lstm_layer(*given, reverse)
    want = REGISTRY["_lstm_layer"].composite(CPU, *given, reverse)
    close(mine[:3], want[:3])
    every = (True,) * 7
    for grads in ((g, gh, gc), (g, None, None), (None, gh, None), (None, None, gc)):
        found = CPU._lstm_layer_backward(*grads, *given, mine[0], *mine[3:], reverse, every)
        close(
            found, REGISTRY["_lstm_layer_backward"].composite(CPU, *grads, *given, want[0], *want[3:], reverse, every)
        )


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_gru(size, reverse, biased):
    steps, batch, hidden, features = size
    x, h, g, gh = arrays((steps, batch, features), (batch, hidden), (steps, batch, hidden), (batch, hidden))
    given = x, h, *weights(3, hidden, features, biased)
    mine = CPU._gru_layer(*given, reverse)
    want = REGISTRY["_gru_layer"].composite(CPU, *given, reverse)
    close(mine[:2], want[:2])
    every = (True,) * 6
    for grads in ((g, gh), (None, gh), (g, None)):
        found = CPU._gru_layer_backward(*grads, *given, mine[0], mine[2], reverse, every)
        close(found, REGISTRY["_gru_layer_backward"].composite(CPU, *grads, *given, want[0], want[2], reverse, every))


def test_parts_depend_on_the_shape():
    large, small = lstm._MIN_SIZE_TO_SPLIT, lstm._MIN_SIZE_TO_SPLIT - 1
    assert lstm._split_batch(1000, small) == [(0, 1000)]
    assert lstm._split_batch(5, large) == [(0, 5)] and lstm._split_batch(32, large) == [(0, 16), (16, 32)]
    for batch in range(1, 200):
        parts = lstm._split_batch(batch, large)
        assert [n for start, stop in parts for n in range(start, stop)] == list(range(batch))
        assert all(start % 4 == 0 for start, _ in parts) and all(start < stop for start, stop in parts)


def test_the_same_for_any_number_of_threads():
    before, found = torch.get_num_threads(), []
    layer = torch.nn.LSTM(8, 190, 1)
    x = torch.randn(3, 50, 8, generator=torch.Generator().manual_seed(0))
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            layer.zero_grad()
            out, _ = layer(x)
            out.square().sum().backward()
            found.append([out.detach().numpy().tobytes(), *(p.grad.numpy().tobytes() for p in layer.parameters())])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_bias_gradients_of_many_rows_in_half_precision(kind, dtype):
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind.upper())(8, 16).to(dtype).double()
    x = torch.randn(40, 32, 8).to(dtype).double()
    found = []
    for number in (torch.float64, dtype):
        out = layer.to(number)(x.to(number))[0]
        found.append(torch.autograd.grad(out.sum(), [layer.bias_ih_l0, layer.bias_hh_l0]))
    for want, got in zip(*found, strict=True):
        assert (got.double() - want).abs().max() < 2 * torch.finfo(dtype).eps * want.abs().max()
