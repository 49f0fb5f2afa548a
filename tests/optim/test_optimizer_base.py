"""Base classes of optimizers and schedules: their interface for subclasses, hooks and programs that read attributes."""

import copy
import inspect
import pickle
import warnings

import pytest

import torchlite as torch
from torchlite import nn, optim
from torchlite.optim import lr_scheduler

# Names with one leading underscore in PyTorch 2.13's Optimizer and LRScheduler.
_OPTIMIZER = {
    "_cuda_graph_capture_health_check", "_optimizer_load_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_step_post_hooks", "_optimizer_step_pre_hooks", "_patch_step_function",
    "_process_value_according_to_param_policy", "_step_supports_amp_scaling", "_warned_capturable_if_run_uncaptured",
    "_zero_grad_profile_name",
}  # fmt: skip
_SCHEDULER = {
    "_get_closed_form_lr", "_get_lr_called_within_step", "_initial_step", "_is_initial", "_update_lr", "_schedulers",
    "_format_param", "_init_is_better", "_is_better", "_reduce_lr", "_reset", "_init_scale_fn",
}  # fmt: skip


def _private(cls):
    return {name for name in dir(cls) if name[0] == "_" and name[1] != "_"}


@pytest.mark.parametrize("name", optim.__all__)
def test_optimizers_add_no_private_names(name):
    found = getattr(optim, name)
    if isinstance(found, type):
        assert _private(found) <= _OPTIMIZER


@pytest.mark.parametrize("name", lr_scheduler.__all__)
def test_schedules_add_no_private_names(name):
    assert _private(getattr(lr_scheduler, name)) <= _SCHEDULER


def _param():
    return nn.Parameter(torch.ones(1))


def test_a_subclass_may_call_its_attributes_as_it_likes():
    class Own(optim.Adam):
        _update = _each = _loss = _init_state = _scaler = _step_plainly = None

        def __init__(self, params):
            super().__init__(params, lr=0.5)
            self._is_left_out = self._split_names = self._choose_flavour = 1

    param = _param()
    optimizer = Own([param])
    for _ in range(2):
        param.grad = torch.ones(1)
        optimizer.step()
    assert param.item() == pytest.approx(0.0, abs=1e-5)

    class Rates(lr_scheduler._LRScheduler):
        def __init__(self, optimizer):
            self._rates = self._total = 3.0
            super().__init__(optimizer)

        def get_lr(self):
            return [self._rates * (self.last_epoch + 1)]

    assert Rates(optimizer).get_last_lr() == [3.0]
    assert issubclass(lr_scheduler._LRScheduler, lr_scheduler.LRScheduler)
    assert not issubclass(lr_scheduler.StepLR, lr_scheduler._LRScheduler)


def test_groups_are_printed_apart():
    optimizer = optim.Adadelta([_param()])
    optimizer.add_param_group({"params": _param(), "lr": 2})
    assert "    weight_decay: 0\n\nParameter Group 1\n    capturable: False\n" in repr(optimizer)


def test_step_hooks_are_given_the_optimizer_first():
    seen = []
    optimizer = optim.SGD([_param()], 0.1)
    optimizer.register_step_pre_hook(lambda one, args, kwargs: seen.append((one, args, kwargs)))
    optimizer.register_step_post_hook(lambda one, args, kwargs: seen.append((one, args, kwargs)))
    optimizer.step(closure=None)
    assert seen == [(optimizer, (optimizer,), {"closure": None})] * 2
    optimizer.register_step_pre_hook(lambda one, args, kwargs: ((one, lambda: 7), {}))
    assert optimizer.step() == 7


def _words(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message)[:60] for warning in caught]


def test_schedules_detect_optimizer_steps():
    before = ["Detected call of `lr_scheduler.step()` before `optimizer.ste"]
    replaced = ["Seems like `optimizer.step()` has been overridden after lear"]
    optimizer = optim.SGD([_param()], 0.1)
    optimizer.step()
    schedule = lr_scheduler.StepLR(optimizer, 1)
    assert _words(schedule.step) == before  # the step was before the schedule
    assert _words(schedule.step) == []
    assert hasattr(optimizer.step, "_wrapped_by_lr_sched") and "step" in vars(optimizer)
    again = lr_scheduler.StepLR(copy.deepcopy(optimizer), 1)
    again.optimizer.step()
    assert _words(again.step) == []
    other = optim.SGD([_param()], 0.1)
    schedule = lr_scheduler.ExponentialLR(other, 0.5)
    other.step = lambda: None
    assert _words(schedule.step) == replaced
    assert type(pickle.loads(pickle.dumps(optimizer))) is optim.SGD


def test_sequences_take_the_first_steps_back():
    optimizer = optim.SGD([_param()], 0.1)
    inner = [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    sequence = lr_scheduler.SequentialLR(optimizer, inner, [3])
    sequence.recursive_undo()
    assert [one.last_epoch for one in inner] == [-1, -2]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"])
def test_betas_are_two(name):
    with pytest.raises(IndexError, match="tuple index out of range"):
        getattr(optim, name)([_param()], betas=(0.9,))
    with pytest.raises(TypeError, match="'float' object is not subscriptable"):
        getattr(optim, name)([_param()], betas=0.9)


def test_gradients_that_do_not_fit_are_refused_in_order():
    leaf = torch.ones(2, requires_grad=True)
    for value, words in (
        (torch.ones(3, dtype=torch.int64, device="meta"), "dtype 'long int' to a tensor with grad_dtype 'Float'"),
        (torch.ones(3, device="meta"), "device type 'meta' to a tensor with device type 'cpu'"),
        (torch.ones(2, 1), r"of size '\[2, 1\]' to a tensor of size '\[2\]'"),
    ):
        with pytest.raises(RuntimeError, match="attempting to assign a gradient (with )?" + words):
            leaf.grad = value


def test_the_module_lists_every_optimizer():
    assert {name: vars(optim)[name] for name in optim.__all__} == {name: getattr(optim, name) for name in optim.__all__}
    assert optim.__all__ and set(optim.__all__) <= set(dir(optim))


OPTIMIZERS = [
    cls
    for cls in (getattr(optim, name) for name in sorted(optim.__all__))
    if isinstance(cls, type) and issubclass(cls, optim.Optimizer) and cls is not optim.Optimizer
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_argument_of_a_constructor_is_an_option(optimizer):
    """Constructors list their options by name; one that is missing there would not be read."""
    options = optimizer([nn.Parameter(torch.zeros(2, 2))], lr=0.1).defaults
    assert set(inspect.signature(optimizer).parameters) - {"params"} <= set(options)


def test_a_hook_before_the_steps_of_all_optimizers():
    seen, param = [], _param()
    own = optim.SGD([param], lr=0.1)
    param.grad = torch.ones(1)
    handle = optim.optimizer.register_optimizer_step_pre_hook(lambda one, args, kwargs: seen.append(one))
    own.step()
    handle.remove()
    own.step()
    assert seen == [own]
