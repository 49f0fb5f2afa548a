"""Views, writes, hooks and names combined, as PyTorch composes them."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.autograd import Function


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def chain(tensor):
    """The names of the nodes from a tensor down to its first leaf."""
    names, node = [], tensor.grad_fn
    while node is not None:
        names.append(node.name().removeprefix("torch::autograd::"))
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return names


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


VIEWS = {
    "TBackward0": lambda b: b.t(),
    "TransposeBackward0": lambda b: b.mT,
    "PermuteBackward0": lambda b: b.permute(1, 0),
    "SelectBackward0": lambda b: b[0],
    "SliceBackward0": lambda b: b[1:],
    "ViewBackward0": lambda b: b.view(-1),
    "UnsqueezeBackward0": lambda b: b.unsqueeze(0),
    "SqueezeBackward1": lambda b: b[None].squeeze(0),
    "SqueezeBackward0": lambda b: b[None].squeeze(),
    "DiagonalBackward0": lambda b: b.diagonal(),
    "AsStridedBackward0": lambda b: b.as_strided((2,), (1,)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_names_of_views_before_and_after_writes(name):
    b = torch.ones(2, 2, requires_grad=True) * 1
    v = VIEWS[name](b)
    assert v.grad_fn.name() == name
    v.mul_(2)
    assert chain(v) == ["AsStridedBackward0", "CopySlices", "MulBackward0", "AccumulateGrad"]
    assert chain(b) == ["CopySlices", "MulBackward0", "AccumulateGrad"]
    b = torch.ones(2, 2, requires_grad=True) * 1
    v = VIEWS[name](b)
    b.mul_(2)
    assert chain(v) == ["AsStridedBackward0", "MulBackward0", "MulBackward0", "AccumulateGrad"]


def test_a_write_through_a_view_is_one_node():
    a, w = leaf(1.0, 2.0, 3.0), leaf(5.0)
    b = a * 1
    b[0].mul_(2)
    assert [(n and n.name(), i) for n, i in b.grad_fn.next_functions] == [("MulBackward0", 0), (None, 0)]
    b[1:2].mul_(w)
    (_, _), (node, _) = b.grad_fn.next_functions
    assert node.variable is w
    for index in (0, slice(0, 2), None, (0,)):
        b = a * 1
        b[index] = 4.0
        assert b.grad_fn.name() == "torch::autograd::CopySlices"
    b[[0, 1]] = 4.0
    assert b.grad_fn.name() == "IndexPutBackward0"


def test_hooks_stay_with_the_former_history_of_a_view():
    a, seen = leaf(1.0, 2.0), []
    b = a * 1
    v = b[0:1]
    v.register_hook(lambda g: seen.append(("view", g.tolist())))
    b.register_hook(lambda g: seen.append(("base", g.tolist())))
    v.mul_(3)
    b.sum().backward()
    assert seen == [("base", [3.0, 1.0])] and a.grad.tolist() == [3, 1]


def test_retained_gradients_of_views_that_are_written():
    a = leaf(1.0, 2.0)
    b = a * 1
    v = b[0:1]
    v.retain_grad()
    v.mul_(3)
    b.sum().backward(retain_graph=True)
    assert v.grad is None and a.grad.tolist() == [3, 1]
    v.sum().backward()
    assert v.grad.tolist() == [1] and a.grad.tolist() == [6, 1]
    b = a * 1
    v = b[0:1]
    v.retain_grad()
    b.mul_(3)
    v.sum().backward()
    assert v.grad.tolist() == [1] and v.retains_grad


def test_marked_dirty_on_views():
    a = leaf(1.0, 2.0, 3.0)
    b = a * 1
    v = b[0:2]
    assert Doubled.apply(v) is v
    (b * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert a.grad.tolist() == [2, 20, 100] and chain(v)[:2] == ["AsStridedBackward0", "CopySlices"]
    b = a * 1
    later = b[1:]
    Doubled.apply(b)
    a.grad = None
    later.sum().backward()
    assert a.grad.tolist() == [0, 2, 2] and later.grad_fn.name() == "AsStridedBackward0"
    for part in ((a * 1).unbind()[0], (a * 1).split(1)[1], (a * 1).chunk(2)[0]):
        with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
            Doubled.apply(part)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        Doubled.apply(a[0:1])
    b = torch.ones(3)
    Doubled.apply(b[1:])
    assert b.tolist() == [1, 2, 2] and not b.requires_grad


def test_leaf_write_errors_precede_other_checks():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x.expand(2, 2).add_(1)
    for source in ((), (torch.ones(1),), (torch.ones(1).untyped_storage(),)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            x.set_(*source)
    y = (x * 1).set_(torch.ones(1))
    assert y.requires_grad and y.grad_fn.name() == "NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="Can.t detach views in-place. Use detach.. instead. If you are using Di"):
        (x * 1)[0:1].detach_()


def test_error_names_the_modified_variable():
    a = torch.ones(2, 2, requires_grad=True)
    b = torch.addmm(a, a, a)
    c = b * b
    b.detach().mul_(2)
    with pytest.raises(RuntimeError, match=r"FloatTensor \[2, 2\]\], which is output 0 of Addmm, is at version 1; exp"):
        c.sum().backward()


def test_comparisons_in_place_keep_the_history():
    a = leaf(1.0, -2.0)
    for write in (lambda s: s.ge_(0), lambda s: s.eq_(1), lambda s: s.logical_not_()):
        s = a * 2
        write(s)
        a.grad = None
        s.sum().backward()
        assert a.grad.tolist() == [0, 0]


def test_an_index_of_truth_copies():
    b = torch.ones(3, 4, requires_grad=True) * 1
    for index in (True, False, (True, 0), (0, True), torch.tensor(True)):
        found = b[index]
        assert not found._is_view() and found.grad_fn.name() == "IndexBackward0"
    found = b[True]
    found.mul_(2)
    assert b.sum() == 12 and b[:].grad_fn.name() == "SliceBackward0"


def test_inference_mode_ignores_enable_grad():
    x = leaf(1.0)
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            assert torch.is_grad_enabled() and not (x * 2).requires_grad and (x * 2).is_inference()
        assert not torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        assert torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.inference_mode(False):
            assert (x * 2).requires_grad and not (x * 2).is_inference()
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_integers_cannot_require_grad():
    i = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="^only Tensors of floating point dtype can require gradients"):
        i.requires_grad_()
    with pytest.raises(RuntimeError, match="^only Tensors of floating point and complex dtype can require gradients"):
        i.requires_grad = True
    for make in (
        lambda: torch.tensor([1], requires_grad=True),
        lambda: torch.zeros(2, dtype=torch.int32, requires_grad=True),
        lambda: torch.ones_like(i, requires_grad=True),
        lambda: torch.randint(3, (2,), requires_grad=True),
        lambda: torch.nn.Parameter(i),
        lambda: torch.randperm(3, requires_grad=True),
        lambda: torch.asarray([1], requires_grad=True),
        lambda: i.new_tensor([1], requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradie"):
            make()
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        (x * 2).backward(inputs=[torch.ones(1)])


def test_needs_input_grad_under_no_grad():
    heard = []

    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            heard.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

    with torch.no_grad():
        found = Product.apply(leaf(1.0), torch.ones(1))
    assert heard == [(True, False)] and not found.requires_grad


def test_broadcast_tensors_returns_tensors_of_the_shape_unchanged():
    b = torch.ones(3)
    found = torch.broadcast_tensors(b, torch.ones(1))
    assert found[0] is b and found[1].shape == (3,) and b.broadcast_to(2, 3).shape == (2, 3)


def test_a_number_over_a_tensor_is_its_reciprocal_times_the_number():
    """Digit for digit; and what the node keeps is the reciprocal, so that the tensor may be written to."""
    x = leaf(2.0, 7.0)
    y = x * 1
    z = 3 / y
    assert z.tolist() == (y.reciprocal() * 3).tolist() and (1 / y).tolist() == y.reciprocal().tolist()
    assert z[1].item() != torch.div(3, y)[1].item()
    y.mul_(2)
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx([-0.75, -3 / 49])
    assert (1j / torch.tensor([2.0])).tolist() == [0.5j] and (3 / torch.tensor([2])).tolist() == [1.5]
    with pytest.raises(TypeError):
        "a" / x
