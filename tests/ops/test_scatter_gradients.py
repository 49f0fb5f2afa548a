"""Gradients of `src` in scatter, scatter_add and scatter_reduce where the index is smaller than it."""

from __future__ import annotations

import pytest

import torchlite as torch

REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]
WRITES = {
    "scatter": lambda x, dim, index, src: x.scatter(dim, index, src),
    "scatter add": lambda x, dim, index, src: x.scatter(dim, index, src, reduce="add"),
    "scatter_add": lambda x, dim, index, src: x.scatter_add(dim, index, src),
    "scatter_ in place": lambda x, dim, index, src: x.clone().scatter_(dim, index, src),
    **{
        f"reduce {how}": lambda x, dim, index, src, how=how: x.scatter_reduce(dim, index, src, how)
        for how in REDUCTIONS
    },
    **{
        f"reduce {how} without self": lambda x, dim, index, src, how=how: x.scatter_reduce(
            dim, index, src, how, include_self=False
        )
        for how in REDUCTIONS
    },
}
INDICES = {
    "one row": (0, [[2, 0, 1, 1]]),
    "one column": (1, [[2], [0]]),
    "one element": (0, [[3]]),
    "two of three rows": (1, [[0, 1, 2], [3, 1, 0]]),
    "two by two": (-1, [[0, 1], [2, 3]]),
}


def values(device, *shape):
    x = torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=torch.float32, device=device)
    return ((x * 0.7).sin() + 1.5).reshape(shape)


def gradients(write, x, dim, index, src, part):
    """The first two derivatives by `src`, of which the op reads `part(src)` or everything."""
    x, src = x.clone().requires_grad_(), src.clone().requires_grad_()
    out = write(x, dim, index, part(src * src))
    first = torch.autograd.grad((out * out).sum(), (x, src), create_graph=True)
    return [*first, *torch.autograd.grad((first[1] ** 2).sum() + (first[0] ** 2).sum(), (x, src))]


@pytest.mark.parametrize("case", INDICES)
@pytest.mark.parametrize("name", WRITES)
def test_only_what_the_index_covers_has_a_gradient(name, case, device):
    dim, index = INDICES[case][0], torch.tensor(INDICES[case][1], device=device)
    x, src = values(device, 4, 4), values(device, 3, 4)
    covered = lambda t: t[: index.shape[0], : index.shape[1]]
    found = gradients(WRITES[name], x, dim, index, src, lambda t: t)
    wanted = gradients(WRITES[name], x, dim, index, src, covered)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert not found[1][index.shape[0] :].any() and not found[1][:, index.shape[1] :].any()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("index", [torch.empty(0, dtype=torch.int64), torch.empty((0, 4), dtype=torch.int64)])
def test_an_empty_index_gives_zeros(name, index, device):
    shape = (3,) if index.ndim == 1 else (3, 4)
    src = torch.ones(shape, device=device, requires_grad=True)
    WRITES[name](torch.zeros(shape, device=device), 0, index.to(device), src).sum().backward()
    torch.testing.assert_close(src.grad, torch.zeros(shape, device=device))


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("index", "shape"), [(1, (3,)), ([1], ()), (1, ()), ([1], (3,))])
def test_vectors_and_numbers(name, index, shape, device):
    src = torch.full(shape, 2.0, device=device, requires_grad=True)
    out = WRITES[name](torch.zeros(2, device=device), 0, torch.tensor(index, device=device), src)
    (gradient,) = torch.autograd.grad(out[1], src)
    wanted = torch.zeros(3 if shape else 1)
    wanted[0] = out.detach()[1].cpu() / 2  # every reduction of one value and 0 is linear in the value
    torch.testing.assert_close(gradient.cpu(), wanted.reshape(shape))


def test_a_source_of_fewer_dimensions(device):
    x, index = torch.zeros(2, 3, device=device), torch.tensor([[0]], device=device)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)"):
        x.scatter(1, index, torch.ones(3, device=device))
    with pytest.raises(RuntimeError, match="same number of dimensions as src tensor"):
        x.scatter_add(1, index, torch.ones((), device=device))


@pytest.mark.parametrize("index", [1, [1]])
def test_a_sparse_gradient_of_gather(index, device):
    x = torch.ones(3, device=device, requires_grad=True)
    (x.gather(0, torch.tensor(index, device=device), sparse_grad=True) * 2).sum().backward()
    assert x.grad.is_sparse and x.grad._nnz() == 1
    assert x.grad.to_dense().tolist() == [0, 2, 0]


def test_a_sparse_gradient_of_gather_from_a_number(device):
    x = torch.ones((), device=device, requires_grad=True)
    x.gather(0, torch.tensor(0, device=device), sparse_grad=True).backward()
    assert x.grad.to_dense().item() == 1


@pytest.mark.parametrize(("reduce", "wanted"), [("max", [3, 5]), ("min", [1, 2])])
def test_scatter_reduce_takes_short_names_without_a_gradient(reduce, wanted, device):
    index = torch.tensor([0, 0, 1, 1], device=device)
    src = torch.tensor([3.0, 1.0, 2.0, 5.0], device=device, requires_grad=True)
    start = torch.tensor([9.0, -9.0], device=device)
    out = start.scatter_reduce(0, index, src, reduce, include_self=False)
    assert out.tolist() == wanted
    assert (
        start.scatter_reduce(0, index, src, f"a{reduce}").tolist()
        == start.scatter_reduce(0, index, src, reduce).tolist()
    )
    with pytest.raises(RuntimeError, match=f"Expected 'reduce' to be one of .* but got {reduce}"):
        out.sum().backward()
    with pytest.raises(RuntimeError, match="must be either sum, prod, mean, amax or amin, got add"):
        start.scatter_reduce(0, index, src, "add")


@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (2, 0)])
@pytest.mark.parametrize("call", ["scatter", "scatter_add", "sum", "prod", "mean", "amax", "amin"])
def test_an_empty_index_reads_nothing(call, shape, device):
    src = torch.ones(shape, device=device, requires_grad=True)
    x = torch.zeros(shape if src.numel() else (1, 1), device=device, requires_grad=True)
    index = torch.zeros(0, dtype=torch.int64, device=device)
    out = getattr(x, call)(0, index, src) if call.startswith("scatter") else x.scatter_reduce(0, index, src, call)
    out.sum().backward()
    assert torch.equal(src.grad, torch.zeros_like(src)) and torch.equal(x.grad, torch.ones_like(x))
