"""`capturable=True`: Adam's count of steps stays on the device, and the steps are the same."""

import copy

import pytest

import torchlite as torch

OPTIONS = {
    "plain": {},
    "decay": {"weight_decay": 0.1},
    "amsgrad": {"amsgrad": True, "maximize": True},
    "no memory": {"betas": (0.0, 0.0)},
    "tensor lr": {"lr": "tensor"},
    "large eps": {"eps": 0.3, "lr": 0.2},
}


def trained(cls, device, dtype, steps, **options):
    torch.manual_seed(0)
    params = [torch.randn(shape, dtype=dtype).to(device).requires_grad_() for shape in ((3, 4), (), (30000,), (7,))]
    if options.get("lr") == "tensor":
        options["lr"] = torch.tensor(0.01, device=device) if options.get("capturable") else 0.01
    optimizer = cls(params, **options)
    for n in range(steps):
        for p in params:
            p.grad = p.detach().cos() * (n + 1)
        optimizer.step()
    return params, optimizer


OTHERS = {
    "Adamax": {"weight_decay": 0.1},
    "NAdam": {"weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"betas": (0.9, 0.9)},
    "ASGD": {"t0": 2, "lambd": 0.1},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_optimizers(device, name):
    cls = getattr(torch.optim, name)
    want, _ = trained(cls, device, torch.float64, 12, **OTHERS[name])
    got, optimizer = trained(cls, device, torch.float64, 12, capturable=True, **OTHERS[name])
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=2e-5, atol=1e-6)
    assert all(
        state["step"].item() == 12 and state["step"].device == got[0].device for state in optimizer.state.values()
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.AdamW])
def test_steps_are_the_same(device, cls, name, dtype):
    want, _ = trained(cls, device, dtype, 4, **OPTIONS[name])
    got, optimizer = trained(cls, device, dtype, 4, capturable=True, **OPTIONS[name])
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(
            a.detach().cpu(), b.detach().cpu(), rtol=2e-5 if dtype is torch.float32 else 2e-6, atol=1e-6
        )
    counts = [state["step"] for state in optimizer.state.values()]
    assert [c.item() for c in counts] == [4] * 4 and all(c.device == got[0].device for c in counts)


def test_counts_survive_a_checkpoint(device):
    params, optimizer = trained(torch.optim.Adam, device, torch.float32, 3, capturable=True)
    saved = copy.deepcopy(optimizer.state_dict())
    for kind in (True, False):
        other = torch.optim.Adam([p.detach().clone().requires_grad_() for p in params], capturable=kind)
        other.load_state_dict(
            copy.deepcopy(saved)
            if kind
            else {**saved, "param_groups": [{**saved["param_groups"][0], "capturable": False}]}
        )
        for p in other.param_groups[0]["params"]:
            p.grad = torch.ones_like(p)
        other.step()
        assert {state["step"].item() for state in other.state.values()} == {4.0}
