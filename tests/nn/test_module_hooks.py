"""Hooks of modules, of one and of all, in the forward and in the backward pass."""

import collections
import gc
import pickle
import weakref

import pytest

import torchlite as torch
from torchlite import nn
from torchlite.nn.modules import module as module_file


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Hooks of the process go with the test, by the names that programs replace."""
    for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks"):
        monkeypatch.setattr(module_file, name, collections.OrderedDict())
    monkeypatch.setattr(module_file, "_global_is_full_backward_hook", None)


def ignore(*args):
    return None


def test_tables_of_the_process_can_be_replaced():
    seen = []
    module_file.register_module_forward_hook(lambda module, args, out: seen.append(1))
    nn.Identity()(1)
    module_file._global_forward_hooks = collections.OrderedDict()
    nn.Identity()(1)
    assert seen == [1]


def test_handles():
    layer = nn.Identity()
    handle = layer.register_forward_hook(ignore, with_kwargs=True, always_call=True)
    assert handle.hooks_dict_ref() is layer._forward_hooks and handle.id in layer._forward_hooks_always_called
    assert [ref() for ref in handle.extra_dict_ref] == [
        layer._forward_hooks_with_kwargs, layer._forward_hooks_always_called
    ]  # fmt: skip
    assert torch.utils.hooks.RemovableHandle.next_id > handle.id
    other, its = pickle.loads(pickle.dumps((layer, handle)))
    assert its.id == handle.id and list(other._forward_hooks) == [handle.id]
    its.remove()
    assert not other._forward_hooks and not other._forward_hooks_with_kwargs and layer._forward_hooks
    with handle:
        assert layer._forward_hooks
    assert not layer._forward_hooks
    lost = layer.register_forward_hook(ignore)
    layer._forward_hooks = collections.OrderedDict()
    gc.collect()
    lost.remove()
    pickle.loads(pickle.dumps(lost)).remove()


def test_lazy_modules_can_be_pickled():
    lazy = pickle.loads(pickle.dumps(nn.LazyLinear(2)))
    assert lazy(torch.ones(1, 3)).shape == (1, 2) and type(lazy) is nn.Linear and not lazy._forward_pre_hooks


def test_arguments_without_gradients_remain_without():
    class Three(nn.Module):
        def forward(self, a, b, c):
            assert a.requires_grad and not b.requires_grad and c.requires_grad
            return a.sum() + b.sum() + c.sum()

    three = Three()
    three.register_full_backward_hook(ignore)
    x = torch.ones(2, requires_grad=True)
    out = three(x, x.detach(), x)
    assert out.grad_fn.name() == "BackwardHookFunctionBackward"


def test_full_hooks_see_tuples_and_named_tuples_but_no_lists():
    Pair = collections.namedtuple("Pair", ["a", "b"])
    seen = []

    class Makes(nn.Module):
        def forward(self, x, kind):
            return kind([x * 2, "text"])

    makes = Makes()
    makes.register_full_backward_hook(lambda module, gi, go: seen.append((len(gi), go[1])))
    x = torch.ones(2, requires_grad=True)
    out = makes(x, lambda items: Pair(*items))
    assert type(out) is Pair and out.b == "text"
    out.a.sum().backward()
    assert seen == [(2, None)]
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors but received"):
        makes(x, list)[0].sum().backward()
    assert seen == [(2, None)]


def test_numbers_of_gradients_are_checked():
    layer, x = nn.Sigmoid(), torch.ones(2, requires_grad=True)
    for register, hook, what in (
        (layer.register_full_backward_pre_hook, lambda m, go: (), "grad_output, got 0, but expected 1"),
        (layer.register_full_backward_pre_hook, lambda m, go: go + go, "grad_output, got 2, but expected 1"),
        (layer.register_full_backward_hook, lambda m, gi, go: torch.ones(2), "grad_input, got 2, but expected 1"),
    ):
        with register(hook), pytest.raises(RuntimeError, match=what):
            layer(x).sum().backward()


def test_hooks_are_not_run_by_gradients_that_pass_the_module_by():
    """Double backward reaches the inputs without the output."""
    layer, seen = nn.Sigmoid(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(go))
    x = torch.ones(2, requires_grad=True)
    (grad,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    assert len(seen) == 1
    grad.sum().backward()
    assert all(go is not None for go in seen)


def test_register_backward_hook_warns_about_missing_grads():
    class Made(nn.Module):
        def __init__(self, forward):
            super().__init__()
            self.forward = forward
            self.register_backward_hook(ignore)

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for forward, args, what in (
        (lambda pair: (pair[0].clone(), pair[1].clone()), ([a, b],), "does not take as input a single Tensor"),
        (lambda a, b: [a.clone(), b.clone()], (a, b), "does not return a single Tensor or a tuple of Tensors"),
        (lambda a, b: (a.clone(), b.clone()), (a, b), "outputs are generated by different autograd Nodes"),
        (lambda a: a.clone().clone(), (a,), "the forward contains multiple autograd Nodes"),
    ):
        with pytest.warns(FutureWarning, match=what):
            Made(forward)(*args)


def test_hooks_after_an_error():
    seen = []

    class Fails(nn.Module):
        def forward(self, x):
            return x + 1

    fails = Fails()
    fails.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    fails.register_forward_hook(lambda module, args, out: 1 / 0)
    fails.register_forward_hook(lambda module, args, out: seen.append((args, out)), always_call=True)
    with pytest.raises(ZeroDivisionError):
        fails(1)
    assert seen == [((10,), 11)]


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_hooks_leave_no_cycle(register):
    layer = nn.Linear(2, 2)
    getattr(layer, register)(ignore)
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(1, 2, requires_grad=True)
        out = layer(x)
        gone = weakref.ref(out)
        out.sum().backward()
        del out
        assert gone() is None and gc.collect() == 0
        alive = weakref.ref(layer)
        del layer
        assert alive() is None
    finally:
        gc.enable()
