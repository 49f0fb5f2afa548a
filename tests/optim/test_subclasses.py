"""Optimizers and schedules that programs write on the bases here."""

import pickle
import re
import types

import pytest

import torchlite as torch
from torchlite.optim import lr_scheduler


def params():
    return [torch.nn.Parameter(torch.ones(2))]


def test_a_wrapper_that_skips_init():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state
            self.defaults = inner.defaults

        def step(self, closure=None):
            return self.inner.step(closure)

    inner = torch.optim.SGD(params(), lr=1.0)
    inner.param_groups[0]["params"][0].grad = torch.ones(2)
    Wrapper(inner).step()
    assert inner.param_groups[0]["params"][0].tolist() == [0, 0]


def test_a_step_put_into_the_class_later_runs_hooks():
    class Own(torch.optim.Optimizer):
        def __init__(self):
            super().__init__(params(), {})

    seen = []
    Own.step = lambda self, closure=None: seen.append("step")
    own = Own()
    own.register_step_pre_hook(lambda *args: seen.append("before"))
    own.register_step_post_hook(lambda *args: seen.append("after"))
    own.step()
    assert seen == ["before", "step", "after"] and Own.step.hooked
    Own.step = torch.optim.Optimizer.profile_hook_step(lambda self, closure=None: seen.append("other"))
    own.step()
    assert seen[3:] == ["before", "other", "after"]
    again = pickle.loads(pickle.dumps(torch.optim.SGD(params(), lr=1.0)))
    assert again._optimizer_step_pre_hooks == {}


def test_the_warning_about_epochs_has_a_name():
    optimizer = torch.optim.SGD(params(), lr=1.0)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match=re.escape(lr_scheduler.EPOCH_DEPRECATION_WARNING)):
        schedule.step(3)


@pytest.mark.parametrize(("mode", "want"), [("triangular", 1.0), ("triangular2", 0.5), ("exp_range", 0.25)])
def test_heights_of_cycles(mode, want):
    optimizer = torch.optim.SGD(params(), lr=1.0, momentum=0.9)
    schedule = lr_scheduler.CyclicLR(optimizer, 0.1, 1.0, mode=mode, gamma=0.5)
    assert schedule.scale_fn(2) == schedule._scale_fn_ref(2) == want
    state = schedule.state_dict()
    assert "_scale_fn_ref" not in state and state["_scale_fn_custom"] is None
    schedule.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert schedule.scale_fn(2) == want
    if mode != "exp_range":
        assert isinstance(schedule._scale_fn_ref, types.FunctionType)


T = torch.tensor
MIXED = [
    ({"betas": (T(0.9), 0.99)}, "betas must be either both floats or both Tensors"),
    ({"betas": (0.9, T(0.99))}, "betas must be either both floats or both Tensors"),
    ({"betas": (0, 0.99)}, "betas must be either both floats or both Tensors"),
    ({"betas": (0.9, 1)}, "Invalid beta parameter at index 1: 1"),
    (
        {"betas": (T(0.9), T(0.9)), "foreach": True},
        "betas[0] as a Tensor is not supported for capturable=False and foreach=True",
    ),
]


@pytest.mark.parametrize(("given", "words"), MIXED)
@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.AdamW])
def test_betas(cls, given, words):
    with pytest.raises(ValueError) as caught:
        cls(params(), **given)
    assert str(caught.value) == words
    cls(params(), betas=(T(0.9), T(0.9)))


@pytest.mark.parametrize("cls", [torch.optim.Adafactor, torch.optim.Muon])
def test_complex_parameters(cls):
    param = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    param.grad = torch.ones_like(param)
    with pytest.raises(RuntimeError, match=f"{cls.__name__} does not support complex parameters"):
        cls([param]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]: SparseAdam does not support"):
        torch.optim.SparseAdam([param])
