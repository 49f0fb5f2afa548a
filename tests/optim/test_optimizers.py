"""Optimizers against PyTorch's recorded trajectories, and what the base class promises."""

import copy
import json
import pathlib

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn, optim

from . import cases

pytestmark = pytest.mark.usefixtures("on_device")
GOLDEN = json.loads(pathlib.Path(__file__).with_name("trajectories.json").read_text())


@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_trajectory(name):
    coarse = name.startswith(("Muon", "LBFGS"))
    np.testing.assert_allclose(
        cases.trajectory(torch, name),
        GOLDEN["optimizers"][name],
        rtol=2e-3 if coarse else 1e-4,
        atol=2e-3 if coarse else 1e-5,
    )


@pytest.mark.parametrize(
    "name", [name for name in cases.OPTIMIZERS if name.startswith(("SGD", "Adam", "RMSprop", "Adagrad"))]
)
def test_multi_tensor_and_plain_paths_agree(name):
    plain, _ = run(
        name, lambda optimizer: [group.update(differentiable=True) for group in optimizer.param_groups] and None
    )
    fused, _ = run(name, lambda optimizer: None)
    np.testing.assert_allclose(fused, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop", "Adagrad"])
def test_many_parameters_of_all_sizes(name, rng):
    """More of them than one launch takes, and some of more elements than one group of a device's threads."""
    values = [
        rng.standard_normal(shape).astype(np.float32)
        for shape in (*((n,) for n in range(70)), (90, 100), (3, 5), (17000,))
    ]
    stepped = []
    for differentiable in (False, True):
        params = [torch.tensor(value) for value in values]
        optimizer = getattr(optim, name)(params, lr=0.1, differentiable=differentiable)
        for _ in range(2):
            for param in params:
                param.grad = param.sin()
            optimizer.step()
        stepped.append(torch.cat([param.reshape(-1) for param in params]).cpu().numpy())
    np.testing.assert_allclose(*stepped, rtol=1e-4, atol=1e-6)


def run(name, prepare, steps=4):
    """The parameters after some steps with gradients that do not depend on them; the path is chosen by `prepare`."""
    params, _ = cases.problem(torch, name)
    params = [param.detach() for param in params]
    optimizer = getattr(optim, name.split()[0])(params, **cases.OPTIMIZERS[name])
    prepare(optimizer)
    for number in range(steps):
        for place, param in enumerate(params):
            if number != 1 or place:  # one parameter misses a step
                param.grad = torch.full_like(param, 0.1 * (number + 1)) + 0.01 * place
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([param.reshape(-1) for param in params]).cpu().numpy(), optimizer


def test_packed_state_can_be_saved_loaded_and_replaced():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    first = optim.Adam(model.parameters(), lr=0.1)

    def step(optimizer):
        for number, param in enumerate(model.parameters()):
            param.grad = torch.full_like(param, 0.5 + number)
        optimizer.step()

    step(first)
    saved = copy.deepcopy(first.state_dict())
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    step(first)
    want = {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(weights)
    second = optim.Adam(model.parameters(), lr=0.5)
    second.load_state_dict(saved)
    assert second.param_groups[0]["lr"] == 0.1
    step(second)
    assert all(torch.equal(value, want[key]) for key, value in model.state_dict().items())
    for param in model.parameters():
        second.state[param]["exp_avg"] = torch.zeros_like(param)
        second.state[param]["exp_avg_sq"] = torch.zeros_like(param)
    before = model[0].bias.detach().clone()
    step(second)
    assert (before - model[0].bias).abs().max() > 0.005  # the replaced moments were used, not the packed ones
    model[0].weight.data = torch.zeros(4, 3)
    step(second)
    assert model[0].weight.abs().sum() > 0


def test_steps_count_as_changes_in_place():
    weight = nn.Parameter(torch.ones(3))
    optimizer = optim.SGD([weight], lr=0.1)
    loss = (weight * weight).sum()
    (weight * 2).sum().backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_groups_names_and_repr():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([("a", a)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["a"]
    optimizer = optim.SGD([{"params": a, "lr": 0.5}], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": [b]})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    assert repr(optim.SGD([a], lr=0.1)) == (
        "SGD (\n"
        "Parameter Group 0\n"
        "    dampening: 0\n"
        "    differentiable: False\n"
        "    foreach: None\n"
        "    fused: None\n"
        "    lr: 0.1\n"
        "    maximize: False\n"
        "    momentum: 0\n"
        "    nesterov: False\n"
        "    weight_decay: 0\n"
        ")"
    )
    assert optim.SGD([a]).state_dict() == {
        "state": {},
        "param_groups": [
            {
                "lr": 0.001,
                "momentum": 0,
                "dampening": 0,
                "weight_decay": 0,
                "nesterov": False,
                "maximize": False,
                "foreach": None,
                "differentiable": False,
                "fused": None,
                "params": [0],
            }
        ],
    }


def leaf():
    return nn.Parameter(torch.ones(2, 2))


ERRORS = [
    (
        lambda: optim.SGD(torch.ones(2)),
        TypeError,
        "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
        r"torch\.((opencl|cuda|cc|toy)\.)?FloatTensor",
    ),
    (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
    (lambda: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    (lambda: optim.SGD([leaf() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
    (lambda: optim.SGD([leaf()], lr=-1), ValueError, "Invalid learning rate: -1"),
    (
        lambda: optim.SGD([leaf()], nesterov=True),
        ValueError,
        "Nesterov momentum requires a momentum and zero dampening",
    ),
    (
        lambda: optim.SGD([leaf()], foreach=True, fused=True),
        RuntimeError,
        "`fused` and `foreach` cannot be `True` together.",
    ),
    (lambda: optim.Adam([leaf()], betas=(2, 0.9)), ValueError, "Invalid beta parameter at index 0: 2"),
    (
        lambda: optim.Adam([leaf()], fused=True, differentiable=True),
        RuntimeError,
        "`fused` does not support `differentiable`",
    ),
    (lambda: optim.RMSprop([leaf()], alpha=-1), ValueError, "Invalid alpha value: -1"),
    (lambda: optim.Rprop([leaf()], etas=(2, 1)), ValueError, "Invalid eta values: 2, 1"),
    (
        lambda: optim.Muon([nn.Parameter(torch.ones(2))]),
        ValueError,
        r"Muon only supports 2D parameters whereas we found a parameter with size: torch.Size\(\[2\]\)",
    ),
    (
        lambda: optim.SGD({leaf()} and [{"params": {leaf()}}]),
        TypeError,
        "optimizer parameters need to be organized in ordered collections",
    ),
    (lambda: optim.SGD([leaf()]).add_param_group(3), TypeError, "param_group must be a dict, but got <class 'int'>"),
    (
        lambda: optim.SGD([leaf()]).load_state_dict(optim.SGD([leaf(), leaf()]).state_dict()),
        ValueError,
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ),
    (
        lambda: optim.LBFGS([{"params": [leaf()]}, {"params": [leaf()]}]),
        ValueError,
        "LBFGS doesn't support per-parameter options",
    ),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    act, kind, message = ERRORS[number]
    with pytest.raises(kind, match=message):
        act()


def test_hooks_and_closure():
    weight, log = nn.Parameter(torch.ones(1)), []
    optimizer = optim.AdamW([weight], lr=0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1 and log == ["before", "after"]
    handle.remove()
    optimizer.step(closure)
    assert log == ["before", "after", "before"]
    assert optimizer.zero_grad() is None and weight.grad is None


def test_complex_parameters():
    weight = nn.Parameter(torch.tensor([1 + 2j, -1j]))
    for name in ("SGD", "Adam", "RMSprop", "Adagrad", "Adamax", "Rprop", "NAdam"):
        optimizer = getattr(optim, name)([weight])
        (weight * weight.conj()).real.sum().backward()
        before = weight.detach().clone()
        optimizer.step()
        assert weight.is_complex() and not torch.equal(weight.detach(), before), name
        optimizer.zero_grad()


def test_differentiable_step():
    start = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = start.clone()
    optimizer = optim.SGD([weight], lr=0.1, differentiable=True)
    weight.grad = start * 3
    optimizer.step()
    weight.sum().backward()
    torch.testing.assert_close(start.grad, torch.tensor([0.7, 0.7]))


def test_adagrad_with_sparse_gradients():
    weight = nn.Parameter(torch.ones(3))
    optimizer = optim.Adagrad([weight], lr=0.5, eps=0.25, lr_decay=0.5)
    for _ in range(2):
        weight.grad = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,), check_invariants=False)
        optimizer.step()
    # The rates are 0.5 and 0.5 / 1.5: 0.25 is added to the roots of 1, 4 and of 2, 8.
    wanted = [1 - 0.5 / 1.25 - 0.5 / 1.5 / (2**0.5 + 0.25), 1, 1 - 0.5 * 2 / 2.25 - 0.5 / 1.5 * 2 / (8**0.5 + 0.25)]
    np.testing.assert_allclose(weight.detach().cpu(), wanted, rtol=1e-6)


@pytest.mark.parametrize("search,calls", [(None, 9), ("strong_wolfe", 9)])
def test_lbfgs_ends_at_the_tolerance_of_the_gradient(search, calls):
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    optimizer = optim.LBFGS([weight], lr=0.3, max_iter=20, tolerance_grad=0.5, line_search_fn=search)
    called = []

    def closure():
        called.append(weight.detach().clone())
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert len(called) == optimizer.state[weight]["func_evals"] == calls
    assert 0 < (2 * weight).abs().max() <= 0.5
    before = weight.detach().clone()
    optimizer.step(closure)  # it is there already
    assert len(called) == calls + 1 and torch.equal(weight.detach(), before)


@pytest.mark.parametrize("swapped", [False, True])
def test_lbfgs_interpolates_by_a_cubic(swapped):
    from torchlite.optim.lbfgs import _cubic_interpolate

    def cubic(x):  # its minimum is at 1
        return x, x**3 - 3 * x, 3 * x * x - 3

    for ends in ((0.0, 3.0), (-0.5, 2.0), (0.25, 1.5)):
        points = [cubic(x) for x in (ends[::-1] if swapped else ends)]
        assert _cubic_interpolate(*points[0], *points[1]) == pytest.approx(1.0)
        assert _cubic_interpolate(*points[0], *points[1], bounds=(1.25, 1.5)) == 1.25
    line = [(x, 2 * x, 3.0) for x in ((0.0, 1.0)[::-1] if swapped else (0.0, 1.0))]
    assert (
        _cubic_interpolate(*line[0], *line[1]) == pytest.approx(0.0, abs=1e-12)
        or 0 <= _cubic_interpolate(*line[0], *line[1]) <= 1
    )


@pytest.mark.parametrize(
    "options,wanted",
    [
        ({}, [0.538483433562, 0.131882139239]),
        ({"betas": (0.8, 0.9)}, [0.419040698663, 0.102709034053]),
        ({"weight_decay": 0.1}, [0.518839563305, 0.153949399147]),
        ({"weight_decay": 0.1, "decoupled_weight_decay": True}, [0.502716458099, 0.13964846211]),
        ({"maximize": True, "eps": 1e-3}, [1.571847187964, -6.109157597792]),
    ],
)
def test_radam_adapts_after_six_steps(options, wanted):
    """PyTorch's values after twelve steps: the first ones do not divide by the root of the squares."""
    p = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.RAdam([p], lr=0.05, **options)
    for _ in range(12):
        optimizer.zero_grad()
        (p * p * torch.tensor([1.0, 3.0], dtype=torch.float64)).sum().backward()
        optimizer.step()
    assert p.tolist() == pytest.approx(wanted, rel=1e-10)
