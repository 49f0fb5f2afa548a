"""What Module and its subclasses have under names that users' subclasses may take: PyTorch's alone."""

import copy
import warnings

import pytest

import torchlite as torch
from torchlite import nn

# What `dir(torch.nn.Module)` of PyTorch 2.13 has with one underscore before it.
_PRIVATE = {
    "_apply", "_call_impl", "_compiled_call_impl", "_get_backward_hooks", "_get_backward_pre_hooks", "_get_name",
    "_load_from_state_dict", "_maybe_warn_non_full_backward_hook", "_named_members",
    "_register_load_state_dict_pre_hook", "_register_state_dict_hook", "_replicate_for_data_parallel",
    "_save_to_state_dict", "_slow_forward", "_version", "_wrapped_call_impl",
}  # fmt: skip


def test_module_has_no_private_names_of_its_own():
    assert {name for name in dir(nn.Module) if name[0] == "_" and name[1] != "_"} == _PRIVATE
    assert nn.Module.__mro__ == (nn.Module, object)
    assert nn.Module.load_state_dict.__qualname__ == "Module.load_state_dict"


def test_a_subclass_may_call_its_methods_as_it_likes():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(2, 2)

        def _forget(self):
            raise AssertionError

        _convert = _set_other = _set_buffer = _load_one = _load_tree = _swap_in = _cast = _get_leaf = _forget
        _call_hooked = _run_forward_hooks = _find_unexpected = _raise_load_errors = _load_everything = _forget

        def forward(self, x):
            return self.gate(x)

    cell = Cell().double()
    cell.gate = nn.Linear(2, 2)
    cell.register_buffer("seen", torch.zeros(1))
    cell.seen = torch.ones(1)
    cell.register_forward_hook(lambda module, args, result: result * 0)
    cell.load_state_dict(cell.state_dict())
    assert cell.get_parameter("gate.weight").dtype is torch.float32
    assert cell(torch.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_classes_say_where_programs_find_them():
    homes = {
        torch.Tensor: "torchlite",
        nn.Parameter: "torchlite.nn.parameter",
        nn.MultiheadAttention: "torchlite.nn.modules.activation",
        type(nn.Identity().register_forward_hook(print)): "torchlite.utils.hooks",
    }
    assert {cls: cls.__module__ for cls in homes} == homes


def test_deprecated_classes_warn():
    for cls in (nn.Container, nn.NLLLoss2d):
        with pytest.warns(FutureWarning, match="deprecated"):
            cls()


def test_a_parameters_copy_has_neither_gradient_nor_attributes():
    param = nn.Parameter(torch.ones(2), requires_grad=False)
    param.grad, param.tag = torch.ones(2), 1
    copied = copy.deepcopy(param)
    assert type(copied) is nn.Parameter and not copied.requires_grad
    assert copied.grad is None and not hasattr(copied, "tag")
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    assert copy.deepcopy(tensor).grad.tolist() == [1.0, 1.0]


class _Pair(nn.Module):
    def forward(self, a, b):
        return a * 2, b * 3


def test_full_backward_hooks_see_zeros_for_inputs_and_none_for_outputs_that_were_not_used():
    seen = []
    pair = _Pair()
    pair.register_full_backward_hook(lambda module, given, got: seen.append((given, got)))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    pair(a, b)[0].sum().backward()
    ((given, got),) = seen
    assert [grad.tolist() for grad in given] == [[2.0, 2.0], [0.0, 0.0]]
    assert got[0].tolist() == [1.0, 1.0] and got[1] is None


@pytest.mark.parametrize(
    ("kind", "answer", "error", "words"),
    [
        ("hook", 5, TypeError, "object of type 'int' has no len()"),
        ("hook", (torch.ones(5),), RuntimeError, "hook 'hook' has changed the size of value"),
        ("hook", (5,), TypeError, "expected Variable, but hook returned 'int'"),
        ("pre_hook", 5, TypeError, "object of type 'int' has no len()"),
        ("pre_hook", torch.ones(7), RuntimeError, "invalid number of grad_output, got 7, but expected 1"),
        ("pre_hook", torch.ones(1, 1), RuntimeError, "hook 'hook' has changed the size of value"),
    ],
)
def test_what_full_backward_hooks_return_is_checked(kind, answer, error, words):
    layer = nn.Linear(2, 1)
    getattr(layer, f"register_full_backward_{kind}")(lambda *args: answer)
    with pytest.raises(error, match=words.replace("(", r"\(").replace(")", r"\)")):
        layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def test_a_functions_node_names_its_module():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        node = Same.apply(torch.ones(1, requires_grad=True)).grad_fn
    assert repr(node).startswith("<torch.autograd.function.SameBackward object at 0x")
