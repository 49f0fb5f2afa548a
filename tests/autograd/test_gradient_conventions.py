"""Gradient conventions where a derivative does not exist or is defined by PyTorch alone: ties, draws, fills, dtype
views.
"""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def gradients(function, *leaves):
    function(*leaves).sum().backward()
    return [x.grad.tolist() for x in leaves]


def test_margins_at_their_ties():
    """PyTorch clamps at 0, whose gradient there is 1; relu's is 0."""
    one = torch.tensor([1.0, -1.0], dtype=torch.float64)
    two = leaf([1.0, 1.0]), leaf([1.0, 1.0])
    assert gradients(lambda a, b: F.margin_ranking_loss(a, b, one), *two) == [[-0.5, 0.5], [0.5, -0.5]]
    far = torch.tensor([-1.0, -1.0], dtype=torch.float64)
    assert gradients(lambda a: F.hinge_embedding_loss(a, far), leaf([1.0, 2.0])) == [[-0.5, 0.0]]
    three = leaf([[1.0, 2.0]]), leaf([[1.0, 3.0]]), leaf([[1.0, 4.0]])
    found = gradients(lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=1.0, eps=0.0), *three)
    assert found == [[[0.0, 0.0]], [[0.0, 1.0]], [[0.0, -1.0]]]
    rows = leaf([[1.0, 0.0]]), leaf([[0.0, 1.0]])
    found = gradients(lambda a, b: F.cosine_embedding_loss(a, b, far[:1], margin=0.0), *rows)
    assert found[0][0] == pytest.approx([0.0, 1.0])
    assert gradients(lambda a: F.multi_margin_loss(a, torch.tensor([0])), leaf([[1.0, 0.0]])) == [[[0.0, 0.0]]]


def test_polar_by_the_sign_of_its_result():
    size, angle = leaf([0.0, -1.0, 2.0]), leaf([1.0, 2.0, 3.0])
    found = gradients(lambda a, b: torch.view_as_real(torch.polar(a, b)), size, angle)
    assert found[0] == pytest.approx([0.0, -0.49315059, -0.84887249])
    assert found[1] == pytest.approx([0.0, 1.32544426, -2.26222498])


WITHOUT = {
    "floor_divide": (lambda x: torch.floor_divide(x, 2), "floor_divide"),
    "//": (lambda x: x // 0.3, "floor_divide"),
    "heaviside": (lambda x: torch.heaviside(x, x), "heaviside"),
    "bincount": (lambda x: torch.bincount(torch.tensor([0, 1]), x), "bincount"),
    "histogram": (lambda x: torch.histogram(x, 2).hist, "histogram"),
    "binomial": (lambda x: torch.binomial(x + 3, torch.full_like(x, 0.5)), "binomial"),
    "ldl_factor": (lambda x: torch.linalg.ldl_factor(torch.eye(2) * x).LD, "linalg_ldl_factor_ex"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_without_a_derivative(name):
    """The result requires a gradient, and backward raises."""
    call, op = WITHOUT[name]
    found = call(torch.tensor([1.0, 2.0], requires_grad=True))
    assert found.requires_grad
    with pytest.raises(RuntimeError, match=f"derivative for aten::{op} is not implemented"):
        found.sum().backward()


@pytest.mark.parametrize(
    "call,words", [(lambda x: torch.geqrf(x).a, "'geqrf'"), (lambda x: x.unique(dim=0), "'unique_dim'")]
)
def test_not_implemented(call, words):
    found = call(torch.eye(2, requires_grad=True))
    with pytest.raises(NotImplementedError, match=f"the derivative for {words} is not implemented"):
        found.sum().backward()


DRAWS = {
    "normal_": "NormalBackward0", "uniform_": "UniformBackward0", "exponential_": "ExponentialBackward0",
    "cauchy_": "CauchyBackward0", "log_normal_": "LogNormalBackward0", "bernoulli_": "BernoulliBackward2",
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_random_writes_into_non_leaves(name):
    x = torch.ones(4, requires_grad=True)
    y = getattr(x * 2, name)()
    assert y.grad_fn.name() == DRAWS[name]
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    y = x * 2
    getattr(y[:2], name)()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0, 2.0]
    p = torch.tensor([0.5], requires_grad=True)
    torch.zeros(3).bernoulli_(p).sum().backward()
    assert p.grad.tolist() == [0.0]


def test_filled():
    x, v = torch.tensor([1.0, float("nan")], requires_grad=True), torch.tensor(2.0, requires_grad=True)
    assert torch.fill(x, 2.0).tolist() == [2.0, 2.0]
    assert gradients(torch.fill, x, v) == [[0.0, 0.0], 2.0]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        torch.fill(torch.ones(2, dtype=torch.int8), 300)


def test_a_view_as_another_dtype_has_no_history(device):
    x = torch.ones(4, device=device, requires_grad=True)
    for source in (x, x * 1):
        for dtype in (torch.float32, torch.int32, torch.int16):
            seen = source.view(dtype)
            assert not seen.requires_grad and seen._base is None and not seen._is_view()
    y = torch.zeros(2, device=device)
    y.view(torch.int32).add_(1)
    assert y._version == 1


def test_requires_grad_after_taking_views():
    """They say that they want one."""
    y = torch.ones(4)
    u = y[1:]
    y.requires_grad_()
    assert u.requires_grad and u.is_leaf and u.grad is None
    y = torch.ones(4)
    u = y[1:]
    y.requires_grad_()
    y.requires_grad_(False)
    assert not u.requires_grad
    u = torch.ones(4)[1:].requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        u.add_(1)


def test_saved_auxiliary_results_are_packed():
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t, lambda t: t):
        x = torch.ones(3, 5, requires_grad=True)
        y = F.cross_entropy(x * 2, torch.tensor([0, 1, 2]))
    assert packed == [(3, 5), (3,), (3,)]  # logits, targets, the logs of the sums
    y.backward()
    assert x.grad.shape == (3, 5)


def test_which_input_was_not_used():
    x, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
        torch.autograd.grad(x.sum(), (x, z))


def test_parameters_and_copies_are_not_watched():
    """Leaves do not make ops look at their inputs twice."""
    from torchlite._dispatch.dispatch_state import GLOBALS

    before = len(GLOBALS["STALE_VIEW_CHECKS"])
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LSTM(3, 3))
    x = torch.ones(3, requires_grad=True)
    leaves = [x.detach().requires_grad_(), torch.nn.Parameter(x.detach()), torch.ones(3).requires_grad_(), module]
    assert len(GLOBALS["STALE_VIEW_CHECKS"]) == before and leaves


@pytest.mark.parametrize("reduced", ["scatter", "without self", "index", "segments"])
def test_second_derivatives_of_products_with_zeros(reduced):
    """PyTorch refuses two zeros at one place."""
    places = torch.tensor([0, 0, 1, 2, 2])
    function = {
        "scatter": lambda x, factors: x.scatter_reduce(0, places, factors, "prod"),
        "without self": lambda x, factors: x.scatter_reduce(0, places, factors, "prod", include_self=False),
        "index": lambda x, factors: x.index_reduce(0, places, factors, "prod"),
        "segments": lambda x, factors: x * torch.segment_reduce(factors, "prod", lengths=torch.tensor([2, 1, 2])),
    }[reduced]
    given = leaf([1.0, 2.0, 3.0]), leaf([0.0, 0.0, 1.5, 0.0, 2.0])
    assert torch.autograd.gradcheck(function, given) and torch.autograd.gradgradcheck(function, given)
