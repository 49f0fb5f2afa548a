"""Gradients of embeddings with repeated rows, and rows added in place."""

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite._settings import thread_count

CPU = table_of(torch.device("cpu"))


def runs(kind, count):
    rng = np.random.default_rng(0)
    return {
        "distinct": rng.permutation(3 * count)[:count],
        "few repeated": rng.integers(0, 3 * count, count),
        "one often": np.where(rng.random(count) < 0.5, 7, rng.integers(0, 3 * count, count)),
        "one alone": np.full(count, 3 * count - 1),
    }[kind]


@pytest.mark.parametrize("padding", [-1, 7])
@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("kind", ["distinct", "few repeated", "one often", "one alone"])
@pytest.mark.parametrize("count", [1, 40, 3000])
def test_gradients(count, kind, by_frequency, padding):
    indices = runs(kind, max(count, 4))[:count]
    rows = 3 * max(count, 4)
    grad = np.random.default_rng(1).standard_normal((count, 130))
    found = CPU._embedding_backward(grad, indices, rows, padding, by_frequency)
    want = REGISTRY["_embedding_backward"].composite(CPU, grad, indices, rows, padding, by_frequency)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    half = CPU._embedding_backward(grad.astype("f2"), indices, rows, -1, False)
    single = CPU._embedding_backward(grad.astype("f2").astype("f4"), indices, rows, -1, False)
    np.testing.assert_array_equal(half, single.astype("f2"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("shape", [(50, 6), (50, 3, 70), (50, 600), (50,), (50, 0)])
@pytest.mark.parametrize("alpha", [1, -2])
def test_rows_added_in_place(shape, dtype, alpha):
    rng = np.random.default_rng(0)
    kind = getattr(torch, dtype)
    index = torch.from_numpy(rng.integers(0, 50, 90))
    source = torch.from_numpy(rng.integers(-9, 9, (90, *shape[1:]))).to(kind)
    for whole in (torch.ones(shape, dtype=kind), torch.ones((*shape, 2), dtype=kind)[..., 0]):
        want = torch.index_add(whole, 0, index, source, alpha=alpha)
        before, place = whole._version, whole.data_ptr()
        assert whole.index_add_(0, index, source, alpha=alpha) is whole
        assert whole.equal(want) and whole._version == before + 1 and whole.data_ptr() == place


def test_errors_and_history_in_place():
    x = torch.zeros(4, 3)
    for index, source, words in (
        ([4], torch.ones(1, 3), "index"),
        ([-1], torch.ones(1, 3), "index"),
        ([0, 1], torch.ones(1, 3), "Number of indices"),
        ([0], torch.ones(1, 2), "shape"),
        ([0], torch.ones(1, 3, dtype=torch.float64), "scalar type"),
    ):
        with pytest.raises((IndexError, RuntimeError), match=words):
            x.index_add_(0, torch.tensor(index), source)
    assert not x.any()
    source = torch.ones(3, 3, requires_grad=True)
    y = torch.zeros(4, 3).index_add_(0, torch.tensor([1, 1, 2]), source, alpha=3)
    (y * torch.arange(4.0)[:, None]).sum().backward()
    assert source.grad.tolist() == [[3.0] * 3, [3.0] * 3, [6.0] * 3]


def test_a_sparse_gradient_steps_its_rows():
    table = torch.nn.Embedding(1000, 8, sparse=True)
    twin = torch.nn.Embedding.from_pretrained(table.weight.detach().clone(), freeze=False)
    indices = torch.tensor([[3, 999, 3], [0, 3, 5]])
    for layer in (table, twin):
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
        layer(indices).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(table.weight, twin.weight)


def test_gradients_of_nothing_and_for_any_number_of_threads(monkeypatch):
    empty = CPU._embedding_backward(np.zeros((0, 5), "f4"), np.zeros(0, "i8"), 3, 1, True)
    assert empty.shape == (3, 5) and not empty.any()
    assert CPU._embedding_backward(np.zeros((0, 5), "f4"), np.zeros(0, "i8"), 0, -1, False).shape == (0, 5)
    rng, found = np.random.default_rng(0), []
    indices, grad = rng.integers(0, 70000, 9000), rng.standard_normal((9000, 60)).astype("f4")
    for count in (1, 2, 3):
        monkeypatch.setattr(thread_count, "_count", count)
        found.append(CPU._embedding_backward(grad, indices, 70000, -1, False).tobytes())
    assert found[0] == found[1] == found[2]
