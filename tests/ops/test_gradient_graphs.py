"""First gradients under `create_graph` require a gradient where PyTorch's do, for every choice of inputs that require
one.
"""

from __future__ import annotations

import pytest

import torchlite as torch

from .gradient_graphs import gradient_graph, recorded
from .op_db import ROWS, load_rows
from .saved_tensors import check_choices

load_rows()
ANSWERS = recorded()
# Of these some samples have other answers, by reason.
OTHER_GRAPHS = {
    "the bias of a norm, whose gradient PyTorch computes together with others": ("instance_norm", "native_batch_norm"),
    "PyTorch composes it of other ops": ("conv_tbc",),
    "PyTorch's has one backward for all inputs, which has none itself": ("scaled_dot_product_attention",),
    "a number, or nothing": ("linalg_det", "logcumsumexp", "prod"),
    "a distance that is a count has a gradient of zeros": ("cdist",),
    "PyTorch's has no derivative": ("_standard_gamma_grad",),
    "refused with a gradient, which PyTorch's row of the table detaches": ("resize_", "resize_as_"),
}
ALLOWED = {name for names in OTHER_GRAPHS.values() for name in names}


def _is_same(found, expected):
    """True for PyTorch's answer. A gradient that PyTorch cannot differentiate may have a derivative."""
    return found == expected or found is not None and found == (expected or "").replace("!", "+")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
def test_first_gradients_require_a_gradient_as_in_pytorch(family):
    rows = [row for name, row in sorted(ROWS.items()) if row.family == family and name in ANSWERS]
    check_choices(
        rows, ANSWERS, ALLOWED, lambda row, *given: gradient_graph(torch, row.function(), row, *given), _is_same
    )


def test_penalties_of_constant_gradients_have_a_backward(device):
    """Convolutions and pools are linear: a penalty of their gradient is constant, and `backward` does nothing."""
    x = torch.ones(1, 1, 4, 4, device=device, requires_grad=True)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.MaxPool2d(2), torch.nn.Flatten()).to(device)
    net.requires_grad_(False)
    (gradient,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    assert x.grad is None or not x.grad.any()


@pytest.mark.parametrize("pool", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"])
def test_gradients_of_pools_beside_other_histories(pool, device):
    """The gradient depends on the factor, and in PyTorch's graph on the input too, with zeros."""
    x = torch.randn(1, 2, 4, 4, device=device, requires_grad=True)
    factor = torch.ones(1, 2, 2, 2, device=device, requires_grad=True)
    out = getattr(torch.nn.functional, pool)(x * 1, 2)
    (gradient,) = torch.autograd.grad((out * factor).sum(), x, create_graph=True)
    for_x, for_factor = torch.autograd.grad(gradient.sum(), (x, factor))
    assert not for_x.any() and for_factor.sum().item() == pytest.approx(8)


def test_constant_gradients_of_batches(device):
    """Per example, and in transforms of transforms."""
    x = torch.randn(3, 1, 4, 4, device=device)

    def penalty(x):
        return torch.func.grad(lambda x: torch.nn.functional.avg_pool2d(x, 2).sum())(x).square().sum()

    assert not torch.vmap(torch.func.grad(penalty))(x).any()
    assert not torch.func.hessian(lambda x: torch.nn.functional.max_pool2d(x, 2).sum())(x[0]).any()
    assert not torch.func.jacrev(torch.func.jacfwd(lambda x: torch.nn.functional.avg_pool2d(x, 2).sum()))(x[0]).any()
