"""Schedules against PyTorch's recorded rates, their states, and averaged models."""

import copy
import json
import pathlib
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite.optim import lr_scheduler, swa_utils

from . import cases

GOLDEN = json.loads(pathlib.Path(__file__).with_name("trajectories.json").read_text())


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_rates(name):
    np.testing.assert_allclose(cases.rates(torch, name), GOLDEN["schedules"][name], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in cases.SCHEDULES if name not in ("LambdaLR", "MultiplicativeLR")])
def test_resumed_from_state(name):
    first, second = cases.two_groups(torch), cases.two_groups(torch)
    one = cases.SCHEDULES[name](lr_scheduler, first)
    for _ in range(3):
        first.step()
        one.step()
    two = cases.SCHEDULES[name](lr_scheduler, second)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    second.load_state_dict(first.state_dict())
    for optimizer, schedule in ((first, one), (second, two)):
        optimizer.step()
        schedule.step()
    assert [group["lr"] for group in first.param_groups] == [group["lr"] for group in second.param_groups]
    assert one.get_last_lr() == two.get_last_lr()


def test_reduce_on_plateau():
    optimizer = cases.two_groups(torch)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, cooldown=1, min_lr=[0.001, 0.002])
    rates = []
    for metric in (1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8):
        schedule.step(metric)
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
    assert rates == [0.1] * 4 + [0.01] * 5 + [0.001] * 3 and optimizer.param_groups[1]["lr"] == 0.002


def test_warnings_and_errors():
    optimizer = cases.two_groups(torch)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        schedule.step()
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        lr_scheduler.StepLR(3, 2)
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        lr_scheduler.StepLR(cases.two_groups(torch), 2, last_epoch=3)
    with pytest.raises(ValueError, match="You must define either total_steps OR"):
        lr_scheduler.OneCycleLR(optimizer, 0.1)


def test_tensor_learning_rates_are_updated_in_place():
    rate = torch.tensor(0.1)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=rate)
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate and abs(rate.item() - 0.05) < 1e-7


def test_averaged_model_and_swa():
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    mean, moving = (
        swa_utils.AveragedModel(model),
        swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5)),
    )
    for value in (1.0, 3.0):
        with torch.no_grad():
            model[0].weight.fill_(value)
        mean.update_parameters(model)
        moving.update_parameters(model)
    assert mean.module[0].weight.item() == 2 and moving.module[0].weight.item() == 2 and mean.n_averaged.item() == 2
    swa_utils.update_bn([torch.ones(2, 1), torch.zeros(2, 1)], mean)
    assert mean.module[1].momentum == 0.1 and mean.module[1].num_batches_tracked.item() == 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = swa_utils.SWALR(optimizer, 0.01, 5, "linear")
    rates = []
    for _ in range(6):
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        schedule.step()
    assert rates == [0.1, 0.082, 0.064, 0.046, 0.028, 0.01]


@pytest.mark.parametrize(
    "make,value",
    [
        (lambda optimizer, x: lr_scheduler.CyclicLR(optimizer, x, 0.5, step_size_up=2), 0.1),
        (lambda optimizer, x: lr_scheduler.CyclicLR(optimizer, 0.1, x, step_size_up=2), 0.5),
        (lambda optimizer, x: lr_scheduler.CyclicLR(optimizer, [x], [0.5], step_size_up=2), 0.1),
        (lambda optimizer, x: lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2, base_momentum=x), 0.8),
        (lambda optimizer, x: lr_scheduler.OneCycleLR(optimizer, x, total_steps=8), 0.5),
        (lambda optimizer, x: lr_scheduler.OneCycleLR(optimizer, [x], total_steps=8), 0.5),
        (lambda optimizer, x: swa_utils.SWALR(optimizer, x, anneal_epochs=2), 0.5),
        (lambda optimizer, x: swa_utils.SWALR(optimizer, [x], anneal_epochs=2), 0.5),
    ],
)
def test_a_schedule_copies_tensors_that_it_is_given(make, value):
    def rates(given):
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=torch.tensor(0.1), momentum=0.9)
        schedule = make(optimizer, given)
        held = [*optimizer.param_groups[0].values(), *vars(schedule).values()]
        flat = [x for each in held for x in (each if isinstance(each, list) else [each])]
        assert not any(isinstance(x, torch.Tensor) and x is given for x in flat)
        found = []
        for _ in range(6):
            optimizer.step()
            schedule.step()
            found.append(float(optimizer.param_groups[0]["lr"]))
            if isinstance(given, torch.Tensor):
                given.fill_(1e3)  # the program's own business
        return found

    np.testing.assert_allclose(rates(torch.tensor(value)), rates(value), rtol=1e-6)


def test_schedulers_that_others_cannot_step():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    step = lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(TypeError, match="at index 1 should have `optimizer` as its attribute"):
        lr_scheduler.SequentialLR(optimizer, [step, object()], [1])
    with pytest.raises(TypeError, match="at index 0 should have `optimizer` as its attribute"):
        lr_scheduler.ChainedScheduler([object(), step], optimizer)
