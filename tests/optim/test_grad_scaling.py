"""Optimizers with `fused=True` and a gradient scaler: gradients are unscaled, and steps left out, where the parameters
are.
"""

import copy

import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY

RULES = {
    "Adam": ("Adam", {}),
    "Adam with decay": ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    "AdamW": ("AdamW", {"maximize": True}),
    "SGD": ("SGD", {}),
    "SGD with momentum": ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    "Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adagrad": ("Adagrad", {"lr_decay": 0.5, "weight_decay": 0.1}),
    "Adagrad as it starts": ("Adagrad", {"initial_accumulator_value": 0.5}),
}
SHAPES = ((3, 4), (), (30000,), (0,), (7,))


def made(name, device, dtype=torch.float32, **more):
    """Parameters and their optimizer."""
    torch.manual_seed(0)
    cls, options = RULES[name]
    params = [torch.randn(shape, dtype=dtype).to(device).requires_grad_() for shape in SHAPES]
    return params, getattr(torch.optim, cls)(params, lr=0.1, **options, **more)


def set_gradients(params, number, scale=1.0):
    for p in params:
        p.grad = p.detach().cos() * (number + 1) * scale


def scaled_step(optimizer, found_inf, grad_scale=None):
    """A step as a scaler has it."""
    where = optimizer.param_groups[0]["params"][0].device
    optimizer.found_inf = torch.tensor(found_inf, device=where)
    if grad_scale is not None:
        optimizer.grad_scale = torch.tensor(grad_scale, device=where)
    optimizer.step()
    del optimizer.found_inf
    if grad_scale is not None:
        del optimizer.grad_scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_only_good_steps_are_taken(device, name, unscaled, dtype):
    want, plain = made(name, device, dtype)
    got, fused = made(name, device, dtype, fused=True)
    for number, bad in enumerate((1.0, 0.0, 0.0, 2.0, 0.0)):
        if not bad:
            set_gradients(want, number)
            plain.step()
        set_gradients(got, number, 1.0 if unscaled else 6.0)
        given = [p.grad.clone() for p in got]
        scaled_step(fused, bad, None if unscaled else 6.0)
        for p, grad in zip(got, given, strict=True):
            torch.testing.assert_close(p.grad, grad if bad or unscaled else grad / 6.0)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=1e-4 if dtype is torch.float32 else 2e-6, atol=1e-6)
    for p, q in zip(got, want, strict=True):
        mine, other = fused.state[p], plain.state[q]
        assert mine.keys() == other.keys()
        for key in mine:
            assert mine[key].device == p.device and mine[key].dtype is (torch.float32 if key == "step" else dtype)
            torch.testing.assert_close(mine[key].cpu(), other[key].cpu(), rtol=1e-4, atol=1e-6, check_dtype=False)


# From PyTorch 2.13: the parameter and its state after steps with these found_inf, grad_scale 4 and gradients [4, 8],
# from [1, 2], lr 0.1.
FROM_PYTORCH = {
    ("Adam", ()): (
        [0.800000011920929, 1.7999999523162842],
        {
            "step": 2.0,
            "exp_avg": [0.1899999976158142, 0.3799999952316284],
            "exp_avg_sq": [0.0019990000873804092, 0.007996000349521637],
        },
    ),
    ("SGD", ()): ([0.7999999523162842, 1.5999999046325684], {}),
    ("Adagrad", (("lr_decay", 0.5),)): ([0.8528594970703125, 1.8528594970703125], {"step": 2.0, "sum": [2.0, 8.0]}),
}


@pytest.mark.parametrize("case", FROM_PYTORCH)
def test_against_pytorch(device, case):
    p = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    optimizer = getattr(torch.optim, case[0])([p], lr=0.1, fused=True, **dict(case[1]))
    for bad in (1.0, 0.0, 1.0, 0.0):
        p.grad = torch.tensor([4.0, 8.0], device=device)
        scaled_step(optimizer, bad, 4.0)
        assert p.grad.tolist() == ([4.0, 8.0] if bad else [1.0, 2.0])
    want, state = FROM_PYTORCH[case]
    assert p.tolist() == pytest.approx(want, rel=1e-6) and optimizer.state[p].keys() == state.keys()
    for key, value in state.items():
        assert optimizer.state[p][key].tolist() == pytest.approx(value, rel=1e-6)


def test_a_first_step_that_is_left_out_leaves_no_momentum(device):
    p = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5, fused=True)
    for bad, buffer in ((1.0, [0.0, 0.0]), (0.0, [2.0, 4.0])):
        p.grad = torch.tensor([4.0, 8.0], device=device)
        scaled_step(optimizer, bad)
        assert optimizer.state[p]["momentum_buffer"].tolist() == buffer


@pytest.mark.parametrize("name", RULES)
def test_a_step_with_a_scaler_reads_nothing(device, name, monkeypatch):
    from torchlite_backends.device_runtime.core import host_transfer

    kind = device.partition(":")[0]
    params, optimizer = made(name, device, fused=True)
    scaler, reads = torch.amp.GradScaler(kind, init_scale=4.0), []
    bad, good = torch.tensor(float("inf"), device=device), torch.tensor(1.0, device=device)

    def iterate(factor):
        optimizer.zero_grad()
        scaler.scale(sum((p * p * factor).sum() for p in params)).backward()
        scaler.step(optimizer)
        scaler.update()

    iterate(good)
    before = [p.detach().clone() for p in params]
    counts, item = dict(host_transfer.TRANSFER_COUNTS), torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: reads.append(self) or item(self))
    iterate(bad)
    if kind != "cpu":
        assert not reads
    assert host_transfer.TRANSFER_COUNTS == counts, "elements went between host and device"
    monkeypatch.undo()
    assert all(torch.equal(p, old) for p, old in zip(params, before, strict=True)) and scaler.get_scale() == 2.0
    iterate(good)
    assert not torch.equal(params[0], before[0]) and not hasattr(optimizer, "found_inf")
    assert all(state["step"].item() == 2 for state in optimizer.state.values() if "step" in state)


def test_gradients_unscaled_before_are_not_scaled_again(device):
    results = []
    for early in (False, True):
        params, optimizer = made("AdamW", device, fused=True)
        scaler = torch.amp.GradScaler(device.partition(":")[0], init_scale=4.0)
        scaler.scale(sum((p * p).sum() for p in params)).backward()
        if early:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        results.append([p.detach().cpu() for p in params])
        torch.testing.assert_close(params[0].grad.cpu(), 2 * made("AdamW", "cpu")[0][0].detach())
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_in_another_order_are_unscaled_in_place(device):
    p = torch.ones(3, 4, device=device, requires_grad=True)
    p.grad = grad = (torch.arange(12.0, device=device).reshape(4, 3) + 1).t()
    optimizer = torch.optim.SGD([p], lr=1.0, fused=True)
    want = grad.cpu() / 2
    scaled_step(optimizer, 0.0, 2.0)
    assert p.grad is grad and torch.equal(grad.cpu(), want) and torch.equal(p.detach().cpu(), 1 - want)


@pytest.mark.parametrize("name", ["AdamW", "SGD with momentum", "Adagrad"])
def test_parameters_in_half_precision(device, name):
    options = {"eps": 1e-3} if name == "AdamW" else {}  # without it small squares vanish and all is NaN
    want, plain = made(name, device, torch.float16, **options)
    got, fused = made(name, device, torch.float16, fused=True, **options)
    for number, bad in enumerate((1.0, 0.0, 1.0, 0.0)):
        if not bad:
            set_gradients(want, number)
            plain.step()
        set_gradients(got, number, 2.0)
        scaled_step(fused, bad, 2.0)
    for p, q in zip(got, want, strict=True):
        torch.testing.assert_close(p.detach(), q.detach(), rtol=2e-3, atol=2e-3)
        assert fused.state[p].get("step", 2.0) == 2.0


def test_the_composite_matches_the_kernels(device):
    results = []
    for kernel in (False, True):
        params, optimizer = made("Adam with decay", device, fused=True)
        for number, bad in enumerate((1.0, 0.0, 1.0, 0.0)):
            set_gradients(params, number, 4.0)
            scaled_step(optimizer, bad, 4.0)
            plan = optimizer._plans[0]
            if not kernel and type(plan.table) is not Composite:
                plan.table = Composite(plan.table)
        results.append([x.detach().cpu() for p in params for x in (p, p.grad, *optimizer.state[p].values())])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


class Composite:
    """A kernel table without fused optimizer steps."""

    def __init__(self, table):
        self.table = table

    def __getattr__(self, name):
        if name.startswith("_fused"):
            return lambda *arguments: REGISTRY[name].composite(self.table, *arguments)
        return getattr(self.table, name)


def test_checkpoints(device):
    params, optimizer = made("Adam", device, fused=True)
    set_gradients(params, 0)
    scaled_step(optimizer, 0.0)
    other_params, other = made("Adam", device, fused=True)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    set_gradients(other_params, 1)
    scaled_step(other, 1.0)
    scaled_step(other, 0.0)
    assert {state["step"].item() for state in other.state.values()} == {2.0} and other.state[other_params[0]][
        "step"
    ].device == other_params[0].device


@pytest.mark.parametrize("name", RULES)
def test_unsupported_grad_scaling_raises(device, name):
    params, optimizer = made(name, device)
    assert (
        not hasattr(optimizer, "_step_supports_amp_scaling")
        and made(name, device, fused=True)[1]._step_supports_amp_scaling
    )
    set_gradients(params, 0)
    with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
        scaled_step(optimizer, 0.0)
    optimizer = type(optimizer)([torch.tensor([1j], device=device, requires_grad=True)], lr=0.1, fused=True)
    optimizer.param_groups[0]["params"][0].grad = torch.tensor([1j], device=device)
    with pytest.raises(
        RuntimeError,
        match="`fused=True` requires all the params to be floating point Tensors of .* but torch.complex64 and",
    ):
        optimizer.step()
