"""Training steps as programs write them: each gives what eager gives, call by call, and is replayed."""

from __future__ import annotations

import copy
import importlib
import sys
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compiled_function import COMPILED_FUNCTIONS, CompiledFunction
from torchlite.nn import functional as F
from torchlite.utils.checkpoint import checkpoint

STEPS = {}


def step(make):
    """Put a step into the table: `make()` gives (function of x, log), and `log()` is what else it did."""
    STEPS[make.__name__] = make
    return make


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def weights(*modules):
    return lambda: [(p.tolist(), p._version, p.grad is None) for m in modules for p in m.parameters()]


def sgd(model, loss_of, **options):
    """The usual step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **options)

    def run(x):
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run, weights(model)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * ctx.k, None


@step
def a_custom_function():
    model = mlp()
    return sgd(model, lambda x: Scaled.apply(model(x), 2.0).sum())


@step
def returns_the_loss_as_a_number():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())

    def run(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        value = loss.item()
        optimizer.step()
        return value, {"hits": (model(x) > 0).sum().item()}

    return run, weights(model)


@step
def stops_where_the_loss_is_no_number():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())

    def run(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if torch.isnan(loss):
            return None
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return norm

    return run, weights(model)


@step
def autocast_inside():
    model = mlp()

    def loss(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.mse_loss(model(x).float(), torch.ones(5, 3))

    return sgd(model, loss)


@step
def half_precision():
    model = mlp().bfloat16()
    return sgd(model, lambda x: model(x.bfloat16()).float().square().mean(), momentum=0.9)


@step
def without_gradients_by_a_decorator():
    model = mlp()
    return torch.no_grad()(lambda x: model(x)), weights(model)


@step
def steps_of_a_schedule():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def run(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        schedule.step()

    return run, lambda: (weights(model)(), schedule.get_last_lr())


@step
def a_rate_that_changes_outside():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def log():
        optimizer.param_groups[0]["lr"] *= 0.9
        return weights(model)()

    return run, log


@step
def checkpoints():
    model = nn.Sequential(mlp(), nn.Dropout(0.5))
    return sgd(model, lambda x: checkpoint(model, x, use_reentrant=False).square().mean())


@step
def gradients_of_functions():
    model = mlp()
    found = {name: p.detach() for name, p in model.named_parameters()}

    def run(x):
        def loss(parameters, row):
            return torch.func.functional_call(model, parameters, (row,)).square().mean()

        return torch.func.vmap(torch.func.grad(loss), (None, 0))(found, x)

    return run, weights(model)


@step
def hooks_of_parameters():
    model = mlp()
    model[0].weight.register_hook(lambda g: g * 2)

    def halve(parameter):
        parameter.grad.mul_(0.5)

    model[2].weight.register_post_accumulate_grad_hook(halve)
    return sgd(model, lambda x: model(x).square().mean())


@step
def hooks_of_tensors():
    model = mlp()

    def loss(x):
        out = model(x)
        out.register_hook(lambda g: g.clamp(-0.01, 0.01))
        return out.square().mean()

    return sgd(model, loss)


@step
def gradients_that_are_kept():
    model = mlp()

    def run(x):
        model.zero_grad()
        out = model(x)
        out.retain_grad()
        out.square().mean().backward()
        return out.grad

    return run, weights(model)


@step
def parametrizations():
    model = mlp()
    nn.utils.parametrizations.weight_norm(model[0])
    nn.utils.parametrizations.spectral_norm(model[2])
    return sgd(model, lambda x: model(x).square().mean())


@step
def gradients_added_up_inside():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def run(x):
        for part in x.chunk(5):
            (model(part).square().mean() / 5).backward()
        optimizer.step()
        optimizer.zero_grad()

    return run, weights(model)


@step
def two_optimizers():
    model = mlp()
    critic = nn.Linear(3, 1)
    first, second = torch.optim.Adam(model.parameters()), torch.optim.RMSprop(critic.parameters())

    def run(x):
        first.zero_grad()
        critic(model(x)).mean().backward()
        first.step()
        second.zero_grad()
        critic(model(x).detach()).square().mean().backward()
        second.step()

    return run, weights(model, critic)


@step
def a_gradient_penalty():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def loss(x):
        x = x.clone().requires_grad_(True)
        (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (g.norm(dim=1) - 1).square().mean()

    return sgd(model, loss)


@step
def an_average_of_weights():
    model = mlp()
    average = copy.deepcopy(model)
    run, log = sgd(model, lambda x: model(x).square().mean())

    def both(x):
        loss = run(x)
        for a, b in zip(average.parameters(), model.parameters(), strict=True):
            a.data.mul_(0.9).add_(b.data, alpha=0.1)
        return loss

    return both, lambda: (log(), weights(average)())


@step
def compiled_parts():
    inner, model = torch.compile(lambda x: x.sin() * 2), torch.compile(mlp())
    return (lambda x: inner(model(x)) + inner(x[:, :3])), weights(model)


CALLS = []


@torch.library.custom_op("composes::sine", mutates_args=())
def sine(x: torch.Tensor) -> torch.Tensor:
    CALLS.append(1)
    return torch.from_numpy(np.sin(x.detach().numpy()))


sine.register_autograd(
    lambda ctx, g: g * ctx.saved_tensors[0].cos(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@step
def an_op_of_the_programs_own():
    model = mlp()
    CALLS.clear()
    run, log = sgd(model, lambda x: sine(model(x)).square().mean())
    return run, lambda: (log(), len(CALLS))


@torch.library.custom_op("composes::double_", mutates_args=("x",))
def double_(x: torch.Tensor) -> None:
    x.numpy()[...] *= 2


@step
def an_op_that_writes():
    state = torch.ones(3)

    def run(x):
        double_(state)
        return x[:, :3] * state

    return run, lambda: (state.tolist(), state._version)


@step
def an_op_whose_backward_comes_later():
    model = mlp()
    return (lambda x: sine(model(x)) * 2), weights(model)


def plain(result):
    """A result in a form that can be compared."""
    if isinstance(result, torch.Tensor):
        return ("tensor", result.dtype, tuple(result.shape), result.requires_grad, result.tolist())
    if isinstance(result, (list, tuple)):
        return [plain(item) for item in result]
    if isinstance(result, dict):
        return {name: plain(item) for name, item in result.items()}
    return type(result), result


def history(function, log, calls):
    """Return the outcomes of consecutive calls, and the gradients of a later backward of their results."""
    found = []
    for i in range(calls):
        torch.manual_seed(i)
        x = torch.randn(5, 4)
        result = function(x)
        if isinstance(result, torch.Tensor) and result.grad_fn is not None:
            result.float().square().sum().backward()
        found.append(repr((plain(result), torch.rand(1).item(), log())))
    return found


@pytest.mark.parametrize("name", sorted(STEPS))
def test_steps_are_replayed(name):
    want = history(*STEPS[name](), 7)
    function, log = STEPS[name]()
    frame = CompiledFunction(function, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = history(frame, log, 7)
    assert found == want
    assert frame.replays >= 3, frame.reasons


@pytest.mark.parametrize("name", ["LBFGS", "SGD", "Adam"])
@pytest.mark.parametrize("what", ["module", "closure", "step"])
def test_optimizers_that_call_a_closure(name, what):
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    outcomes = []
    for compiled in (False, True):
        model = copy.deepcopy(first)
        more = {"max_iter": 4, "line_search_fn": "strong_wolfe"} if name == "LBFGS" else {}
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **more)
        frame = CompiledFunction(model, "model", fullgraph=True)
        forward = frame if compiled and what == "module" else model

        def step(x, forward=forward, optimizer=optimizer, what=what if compiled else ""):
            def closure():
                optimizer.zero_grad()
                loss = (forward(x) - y).pow(2).mean()
                loss.backward()
                return loss

            return optimizer.step(inner if what == "closure" else closure)

        def of_closure(model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            return loss

        inner = CompiledFunction(of_closure, "closure", fullgraph=True)
        outer = CompiledFunction(step, "step")
        run = outer if compiled and what == "step" else step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses = [float(run(x)) for _ in range(8)]
        outcomes.append((losses, [p.tolist() for p in model.parameters()]))
    assert outcomes[0] == outcomes[1]
    if what == "step":
        assert outer.replays == (0 if name == "LBFGS" else 5) and bool(outer.reasons) is (name == "LBFGS")
    else:
        assert (frame if what == "module" else inner).replays >= 5


@pytest.mark.parametrize("what", ["inside", "outside", "in place"])
def test_modules_whose_gradients_other_processes_share(what):
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        outcomes = []
        for compiled in (False, True):
            model = copy.deepcopy(first)
            before = set(COMPILED_FUNCTIONS)
            if compiled and what == "inside":
                net = nn.parallel.DistributedDataParallel(torch.compile(model, fullgraph=True))
            else:
                net = nn.parallel.DistributedDataParallel(model)
            run = torch.compile(net, fullgraph=True) if compiled and what == "outside" else net
            if compiled and what == "in place":
                net.compile(fullgraph=True)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            losses = []
            torch.manual_seed(1)
            for _ in range(8):
                optimizer.zero_grad()
                loss = run(torch.randn(8, 3)).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            outcomes.append((losses, [p.tolist() for p in model.parameters()]))
        assert outcomes[0] == outcomes[1]
        (frame,) = set(COMPILED_FUNCTIONS) - before
        assert frame.replays == 6 and not frame.reasons
        if what == "outside":
            assert "_orig_mod.module.0.weight" in run.state_dict() and "_compiled_call_impl" not in vars(model)
    finally:
        torch.distributed.destroy_process_group()


def test_finders_of_modules_in_python_are_no_graph_break(monkeypatch, tmp_path):
    """A first call may import what a finder of a library looks for, as those of pytest and of editable packages."""
    (tmp_path / "a_finder.py").write_text("def find_spec(name, path, target=None):\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    finder = importlib.import_module("a_finder")

    def loading(x, second):
        if second:
            import quopri  # noqa: F401
        else:
            import colorsys  # noqa: F401
        return x + 1

    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    for name in ("colorsys", "quopri"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    frame = CompiledFunction(loading, "loading")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in range(8):  # the finder's code is known to the second kind of calls
            assert frame(torch.ones(2), call > 3).tolist() == [2, 2]
