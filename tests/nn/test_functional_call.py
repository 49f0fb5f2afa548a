"""Modules called with other tensors than their own."""

import pytest

import torchlite as torch
from torchlite import func, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(1, 1)
        self.register_buffer("buffer", torch.ones(1))
        self.foo = 0.0
        self.tied = self.l1.bias

    def forward(self, x):
        return self.l1(x) + self.buffer


def zeros():
    return {"l1.weight": torch.zeros(1, 1), "l1.bias": torch.zeros(1), "buffer": torch.zeros(1)}


X = torch.ones(1, 1)
WRONG = [
    ({"l1.weight": X}, {"strict": True}, RuntimeError, "Missing key(s): 'buffer', 'l1.bias', 'tied'."),
    (
        {**zeros(), "extra": X},
        {"strict": True},
        RuntimeError,
        "reparametrizing for Net:\n\tUnexpected key(s): 'extra'.",
    ),
    ({"l1.bias": X, "tied": 5 * X}, {}, ValueError, "got multiple values for keys ['l1.bias', 'tied'], which are tied"),
    ({"buffer": "abc"}, {}, TypeError, "abc is not an instance of torch.Tensor"),
    ({"foo": X}, {}, TypeError, "attribute `foo`: 0.0 is not an instance of torch.Tensor"),
    ({"l2.weight": X}, {}, AttributeError, "Net has no attribute `l2`"),
    ({"foo.weight": X}, {}, TypeError, "submodule `foo`: 0.0 is not an instance of torch.nn.Module"),
    ({"": X}, {}, KeyError, "tensor name can't be empty string"),
    ((zeros(), {"l1.weight": X}), {}, ValueError, "['l1.weight'] appeared in multiple dictionaries"),
    ((zeros(), 3), {}, ValueError, "Expected all elements of parameter_and_buffer_dicts to be dictionaries"),
    (3, {}, ValueError, "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got"),
]


@pytest.mark.parametrize(("tensors", "options", "error", "words"), WRONG)
def test_mismatched_tensors_raise_and_state_is_restored(tensors, options, error, words):
    net = Net()
    before = dict([*net.named_parameters(), *net.named_buffers()])
    with pytest.raises(error) as caught:
        func.functional_call(net, tensors, X, **options)
    assert words in str(caught.value).replace("\\'", "'")
    after = dict([*net.named_parameters(), *net.named_buffers()])
    assert list(before) == list(after) and all(after[name] is value for name, value in before.items())
    assert net.foo == 0.0


def test_tensors_are_in_the_modules_place():
    net = Net()
    assert func.functional_call(net, zeros(), X).item() == 0
    assert func.functional_call(net, ({"l1.weight": X}, {"l1.bias": X[0]}), (X,)).item() == 3
    assert func.functional_call(net, zeros(), (), {"x": X}).item() == 0
    assert torch.allclose(func.functional_call(net, {"l1.bias": None}, X), net.l1.weight + 1)
    weight = torch.full((1, 1), 3.0, requires_grad=True)
    func.functional_call(net, {"l1.weight": weight}, X).sum().backward()
    assert weight.grad.item() == 1 and net.l1.weight.grad is None


def test_more_tensors_than_the_module_has():
    net, seen = Net(), []
    net.l1.register_forward_hook(lambda module, args, out: seen.append([name for name, _ in module.named_parameters()]))
    func.functional_call(net, {"l1.extra": X}, X)
    func.functional_call(net, {"l1.extra": nn.Parameter(X)}, X)
    assert seen == [["weight", "bias"], ["weight", "bias", "extra"]] and not hasattr(net.l1, "extra")


def test_assigned_buffers_are_written_to_the_dict():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))

        def forward(self):
            self.n = self.n + 1
            return self.n

    counts, tensors = Counts(), {"n": torch.ones(1)}
    assert func.functional_call(counts, tensors).item() == 2
    assert tensors["n"].item() == 2 and counts.n.item() == 0


def test_stacked_states():
    parameters, buffers = func.stack_module_state([nn.BatchNorm1d(3) for _ in range(2)])
    assert parameters["weight"].shape == (2, 3) and parameters["weight"].is_leaf and parameters["weight"].requires_grad
    assert buffers["running_mean"].shape == (2, 3) and not buffers["running_mean"].requires_grad
    for models, words in (
        ([], "Expected at least one model, got 0."),
        ([nn.ReLU(), nn.ReLU().eval()], "the same training/eval mode"),
        ([nn.ReLU(), nn.Linear(1, 1)], "of the same class"),
    ):
        with pytest.raises(RuntimeError, match=words):
            func.stack_module_state(models)


def test_the_older_name():
    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call`"):
        assert nn.utils.stateless.functional_call(Net(), zeros(), X).item() == 0
    with pytest.raises(RuntimeError, match="can't be used with nn.DataParallel"):
        func.functional_call(nn.DataParallel(Net()), {}, X)


def test_scripted_modules_are_refused():
    scripted = torch.jit.script(torch.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="^The stateless API can't be used with Jitted modules$"):
        torch.func.functional_call(scripted, {"weight": torch.ones(1, 1)}, torch.ones(1, 1))
