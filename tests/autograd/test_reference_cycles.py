"""No garbage collection is needed for released objects: errors, hooks, custom Functions."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.autograd import Function
from torchlite.nn import functional as F
from torchlite.utils.checkpoint import checkpoint


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        ctx.shape = x.shape
        return x * factor

    @staticmethod
    def backward(ctx, g):
        assert ctx.saved_tensors[0].shape == ctx.shape
        return g * ctx.factor, None


class ExpAndSame(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y, x * 1

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0] + h


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("in backward")


def plain(device, *shape):
    return torch.ones(shape, device=device)


def leaf(device, *shape):
    return torch.ones(shape, device=device, requires_grad=True)


def module(device):
    return nn.Sequential(nn.Linear(3, 4, device=device), nn.Tanh(), nn.Linear(4, 2, device=device))


def hooked_module(d):
    m = module(d)
    m.register_forward_hook(lambda m, i, o: None)
    m.register_forward_pre_hook(lambda m, i: None)
    m[0].register_full_backward_hook(lambda m, i, o: None)
    m[2].register_full_backward_pre_hook(lambda m, o: None)
    m(leaf(d, 2, 3)).sum().backward()


def failing_module(d):
    m = module(d)
    m.register_forward_hook(lambda m, i, o: None, always_call=True)
    m(plain(d, 2, 4))


def hooks_of_nodes(d):
    y = leaf(d, 3) * 2
    y.grad_fn.register_hook(lambda gi, go: None)
    y.grad_fn.next_functions[0][0].register_prehook(lambda g: None)
    y.grad_fn.metadata["node"] = 1
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.sum().backward()


def hooks_of_leaves(d):
    x, y = leaf(d, 3), leaf(d, 3)
    x.register_hook(lambda g: g)
    y.register_post_accumulate_grad_hook(lambda p: None)
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda gs: None)
    (x * y).sum().backward()


def saved_hooks(d):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        x = leaf(d, 3)
        y = x.exp() * x
        x.softmax(0), x.max(0), ExpAndSame.apply(x)
    y.sum().backward()


def raw_saved(d):
    y = leaf(d, 3).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward(retain_graph=True)
    assert y.grad_fn._saved_result is not None


def functions(d):
    Scaled.apply(leaf(d, 3), 2)
    Scaled.apply(leaf(d, 3), 2).sum().backward()
    y = Scaled.apply(leaf(d, 3), 2)
    assert y.grad_fn.factor == 2 and y.grad_fn.next_functions and repr(y)
    a, b = ExpAndSame.apply(leaf(d, 3))
    (a + b).sum().backward()
    ExpAndSame.apply(leaf(d, 3))


def views(d):
    x = leaf(d, 4) * 1
    part = x[1:]
    x.mul_(2)
    part.mul_(3)
    x.sum().backward()
    assert part.grad_fn is not None
    y = plain(d, 3, 2)
    part = y[1]
    y.add_(leaf(d, 3, 2))
    (part * 2).sum().backward()


def second_order(d):
    x = leaf(d, 3)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()


def twice(d):
    y = (leaf(d, 3) ** 2).sum()
    y.backward()
    y.backward()


def changed(d):
    y = (leaf(d, 3) * 1).exp()
    y.add_(1)
    y.sum().backward()


def failing_hook(d):
    x = leaf(d, 3)
    x.register_hook(lambda g: g[:1])
    x.sum().backward()


PROGRAMS = {
    "functions": functions, "hooks of nodes": hooks_of_nodes, "hooks of leaves": hooks_of_leaves,
    "saved hooks": saved_hooks, "raw saved": raw_saved, "views": views, "second order": second_order,
    "module hooks": hooked_module,
    "checkpoint": lambda d: checkpoint(lambda x: x.exp().sin(), leaf(d, 3), use_reentrant=False).sum().backward(),
    "checkpoint alone": lambda d: checkpoint(lambda x: x.exp().sin(), leaf(d, 3), use_reentrant=False),
    "reentrant checkpoint": lambda d: checkpoint(lambda x: x.exp(), leaf(d, 3), use_reentrant=True).sum().backward(),
}  # fmt: skip
ERRORS = {
    "add": lambda d: plain(d, 3) + plain(d, 4), "add with grad": lambda d: leaf(d, 3) + plain(d, 4),
    "matmul": lambda d: plain(d, 3, 4) @ plain(d, 3, 4), "linear": lambda d: module(d)(plain(d, 2, 5)),
    "conv": lambda d: F.conv2d(plain(d, 1, 3, 8, 8), plain(d, 4, 2, 3, 3)), "index": lambda d: plain(d, 3)[5],
    "reshape": lambda d: plain(d, 3).reshape(4), "view": lambda d: plain(d, 3, 4).t().view(12),
    "cat": lambda d: torch.cat([plain(d, 3, 4), plain(d, 3, 5)]), "in place": lambda d: plain(d, 3).add_(plain(d, 4)),
    "leaf": lambda d: leaf(d, 3).mul_(2), "sum": lambda d: plain(d, 3).sum(4), "hook": failing_hook,
    "cross entropy": lambda d: F.cross_entropy(plain(d, 3, 4), torch.zeros(2, dtype=torch.int64, device=d)),
    "max pool": lambda d: F.max_pool2d(plain(d, 1, 1, 2, 2), 5),
    "one of several": lambda d: leaf(d, 3).unbind()[0].mul_(2),
    "layer norm": lambda d: F.layer_norm(plain(d, 3, 4), (5,)), "twice": twice, "changed": changed,
    "function": lambda d: Fails.apply(leaf(d, 3)).sum().backward(), "module": failing_module,
    "no scalar": lambda d: leaf(d, 3).backward(), "argument": lambda d: torch.add(plain(d, 3), plain(d, 3), nonsense=1),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _without_the_rest():
    """Freeze existing objects, so that the collector does not scan them each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@contextlib.contextmanager
def nothing_left():
    """gc.collect() finds nothing after what is done inside."""
    gc.collect()
    gc.disable()
    try:
        yield
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_leave_nothing(device, name):
    PROGRAMS[name](device)
    with nothing_left():
        PROGRAMS[name](device)


def fails(name, device) -> None:
    try:
        ERRORS[name](device)
    except (RuntimeError, IndexError, ValueError, TypeError):
        return
    raise AssertionError(f"{name} raised nothing")


@pytest.mark.parametrize("name", ERRORS)
def test_errors_leave_nothing(device, name):
    fails(name, device)
    with nothing_left():
        fails(name, device)


def test_memory_is_freed_with_the_last_reference(device):
    gc.disable()
    try:
        x = leaf(device, 3) * 1
        kept = weakref.ref(x)
        for _ in range(3):
            with contextlib.suppress(RuntimeError):
                x + plain(device, 4)
        Scaled.apply(x, 2)
        del x
        assert kept() is None
    finally:
        gc.enable()
