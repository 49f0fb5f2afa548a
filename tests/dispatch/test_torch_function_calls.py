"""`__torch_function__` sees the calls that PyTorch shows it, with the arguments as they were written."""

from __future__ import annotations

import functools

import pytest

import torchlite as torch

from .torch_function_calls import Caller, program_lines, recorded

# Lines with other calls, by reason.
OTHER_CALLS = {
    "one function of several names": (
        "F.cosine_similarity(a, b)", "F.pairwise_distance(a, b)", "F.avg_pool1d(a[None], 2)",
        "F.conv1d(a[None], torch.ones(1, 2, 2))", "F.conv2d(a[None, None], torch.ones(1, 1, 2, 2), padding=1)",
        "F.sigmoid(a)", "F.tanh(a)", "torch.mm(a, m)", "torch.special.expit(a)", "torch.true_divide(a, b)",
        "torch.subtract(a, b)", "torch.multiply(a, b)", "torch.conv1d(a[None], torch.ones(1, 2, 2))",
        "torch.clip(a, 0, 1)",
    ),
    "a list of one int is as the int": ("torch.flip(a, [0])",),
    "composed of attributes": ("torch.nn.Parameter(a)", "torch.linalg.multi_dot([m, m])"),
    "an op of torchlite": ("a.set_(b)",),
    "copied by a method of its own": ("import copy; copy.copy(a)", "import copy; copy.deepcopy(a)"),
}  # fmt: skip
ALLOWED = {line for lines in OTHER_CALLS.values() for line in lines}
ANSWERS = recorded()


@functools.cache
def caller() -> Caller:
    return Caller(torch)


@pytest.mark.filterwarnings("ignore")
def test_calls_are_pytorchs():
    wrong, needless = {}, []
    for line in program_lines():
        found = caller().calls(line)
        if line in ALLOWED:
            needless += [line] * (found == ANSWERS[line])
        elif found != ANSWERS[line]:
            wrong[line] = found, ANSWERS[line]
    assert not wrong
    assert not needless, "PyTorch's calls: take them out of OTHER_CALLS"


class Only(torch.Tensor):
    """A class that notes calls and runs nothing."""

    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append((func, args, kwargs))
        return 7


def test_a_method_is_another_object_than_the_function():
    assert torch.Tensor.add is not torch.add and torch.Tensor.add is torch.Tensor.add
    assert torch.Tensor.sum.__qualname__ == "Tensor.sum" and torch.ones(2).sum().item() == 2
    assert torch.nn.functional.layer_norm is not torch.layer_norm


def test_a_handlers_result_is_the_calls_result():
    x = torch.ones(2).as_subclass(Only)
    assert x.shape == 7 and x + 1 == 7 and 1 - x == 7 and x.item() == 7 and torch.numel(x) == 7
    assert torch.nn.functional.relu(x) == 7 and x[0] == 7 and torch.autograd.grad(x, x) == 7
    x += 1
    assert x == 7


def test_writes_and_setters_come_too():
    x, y = torch.ones(2).as_subclass(Only), torch.zeros(2)
    Only.seen.clear()
    x[0] = 1
    x.requires_grad = True
    x.grad = None
    y[0] = x
    y.add_(x)
    names = [torch.overrides.resolve_name(func) for func, _, _ in Only.seen]
    assert names[:2] == ["torch.Tensor.__setitem__", "torch.Tensor.requires_grad.__set__"]
    assert names[2:] == ["torch.Tensor.grad.__set__", "torch.Tensor.__setitem__", "torch.Tensor.add_"]
    assert Only.seen[0][1:] == ((x, 0, 1), None) and y.tolist() == [0, 0]


def test_the_form_of_a_call_is_that_of_the_callers_code():
    w = torch.eye(2).as_subclass(Only)
    Only.seen.clear()
    torch.mean(w, dim=1)
    torch.mean(w, 1, keepdim=True)
    torch.mean(*(w, 1))
    keywords = {"input": w}
    torch.mean(**keywords)
    list(map(torch.mean, [w]))
    torch.linalg.eigh(w)
    assert [(len(args), kwargs) for _, args, kwargs in Only.seen] == [
        (1, {"dim": 1}), (2, {"keepdim": True}), (2, None), (1, None), (1, None), (1, None),
    ]  # fmt: skip


def test_a_plain_class_between_keeps_its_place():
    class Middle(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        def answer(self):
            return 42

    class Over(Middle):
        __torch_function__ = Only.__dict__["__torch_function__"]
        seen: list = []

    x = torch.ones(2).as_subclass(Over)
    assert x.answer() == 42 and x.shape == 7 and torch.ones(2).as_subclass(Middle).shape == (2,)


def test_switched_off_nothing_is_passed_on():
    x = torch.ones(2).as_subclass(Only)
    with torch._C.DisableTorchFunctionSubclass():
        assert x.shape == (2,) and (x + 1).tolist() == [2, 2] and x.dtype is torch.float32


def test_super_passes_a_call_on_as_the_base_class():
    class Doubling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

        def sum(self, *args):
            return super().sum(*args) * 2

    x = torch.ones(3).as_subclass(Doubling)
    assert x.sum().item() == 6 and isinstance(x.sum(), Doubling) and isinstance(x[0], Doubling)
    x[0] = 5
    assert x.tolist() == [5, 1, 1] and hash(x) == id(x) and len(x) == 3 and [y.item() for y in x] == [5, 1, 1]


class Foreign:
    """An object that is no Tensor and answers each call with the name of the function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert types == (cls,)
        return func.__name__


FOREIGN_CALLS = {
    "copy_": lambda x, other: x.copy_(other),
    "fill_": lambda x, other: x.fill_(other),
    "__getitem__": lambda x, other: x[other],
    "type_as": lambda x, other: x.type_as(other),
    "to": lambda x, other: x.to(other),
    "embedding": lambda x, other: torch.nn.functional.embedding(x.long(), other),
    "embedding_bag": lambda x, other: torch.nn.functional.embedding_bag(x.long(), other, x.long()),
    "multi_head_attention_forward": lambda x, other: torch.nn.functional.multi_head_attention_forward(
        other, x, x, 1, 1, x, x, None, None, False, 0.0, x, x
    ),
    "masked_fill": lambda x, other: x.masked_fill(x > 0, other),
    "linear": lambda x, other: torch.nn.functional.linear(x, other),
    "cat": lambda x, other: torch.cat([x, other]),
}


@pytest.mark.parametrize("name", FOREIGN_CALLS)
def test_an_object_that_is_no_tensor_is_asked_in_any_place(name):
    assert FOREIGN_CALLS[name](torch.zeros(2), Foreign()) == name


def test_writes_ask_objects_that_are_no_tensors():
    x = torch.zeros(2)
    x[0] = Foreign()
    x[Foreign()] = 1
    assert x.tolist() == [0, 0]
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(TypeError):
        x[0] = object()


def test_a_state_dict_may_hold_tensor_likes():
    class Lazy(Foreign):
        shape, dtype, ndim, device = torch.Size([2]), torch.float32, 1, torch.device("cpu")

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*(torch.ones(2) if isinstance(value, cls) else value for value in args), **(kwargs or {}))

    layer = torch.nn.Linear(1, 2)
    layer.load_state_dict({"weight": layer.weight.detach(), "bias": Lazy()})
    assert layer.bias.tolist() == [1, 1]
