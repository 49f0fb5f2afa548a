"""Views that refuse writes, histories that come after a view, inference tensors: as recorded from PyTorch 2.13."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.autograd import Function


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Viewed(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g


class Tripled(Function):
    """Writes to its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, g):
        return g * 3


class TripledAndTwice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3), x * 2

    @staticmethod
    def backward(ctx, g, h):
        return g * 3 + h * 6


def leaf(device, *shape):
    return torch.ones(shape, device=device, requires_grad=True)


NO_GRAD = "A view was created in no_grad mode and is being modified inplace with grad mode enabled"
SEVERAL = "is a view and is being modified inplace. This view is the output of a function that returns multiple views"


def test_a_view_under_no_grad_inherits_requires_grad(device):
    x = leaf(device, 2)
    with torch.no_grad():
        view = x.view(-1)
    assert view.requires_grad and view.is_leaf and view.grad_fn is None
    y = view * 2
    assert y.requires_grad and y.grad_fn.next_functions[0] == (None, 0)
    y.sum().backward()
    assert x.grad is None and view.grad is None
    with torch.no_grad():
        assert not torch.ones(2, device=device).view(-1).requires_grad
        assert not x.view(-1).view(torch.int32).requires_grad
        assert x.view(-1)[0].requires_grad


def test_a_view_follows_later_requires_grad_of_its_base(device):
    x = torch.ones(2, device=device)
    view = x[0]
    x.requires_grad_()
    assert view.requires_grad and view.is_leaf
    assert not x.detach().requires_grad


@pytest.mark.parametrize("wants", [True, False])
def test_a_view_under_no_grad_cannot_be_written_with_gradients(device, wants):
    x = leaf(device, 2) * 1 if wants else torch.ones(2, device=device)
    with torch.no_grad():
        view = x.view(-1)
        view.add_(1)
    if not wants:
        view.add_(1)
    with pytest.raises(RuntimeError, match=NO_GRAD):
        view.mul_(leaf(device, 2))
    x.mul_(leaf(device, 2))
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        view.grad_fn
    with pytest.raises(RuntimeError, match="its base or another view"):
        view * 2


@pytest.mark.parametrize("parts", ["unbind", "split", "chunk"])
def test_one_of_several_views_cannot_be_written(device, parts):
    x = leaf(device, 2, 2) * 1
    one = getattr(x, parts)(*() if parts == "unbind" else (1,))[0]
    with pytest.raises(RuntimeError, match=SEVERAL):
        one.mul_(2)
    with pytest.raises(RuntimeError, match="Output 0 of View " + SEVERAL):
        one.view(-1).mul_(2)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace. This view"):
        one.grad_fn
    y = torch.ones(2, 2, device=device).unbind()[0]
    assert y.mul_(2).tolist() == [2, 2]


def test_pieces_of_tensor_split_can(device):
    x = leaf(device, 4)
    y = x * 1
    y.tensor_split(2)[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


@pytest.mark.parametrize(("parts", "how"), [("split", 2), ("chunk", 2), ("split_with_sizes", [2, 2])])
def test_unsafe_split_results_are_no_views(device, parts, how):
    x = leaf(device, 4)
    pieces = getattr(torch, f"unsafe_{parts}")(x * 1, how)
    assert [p.tolist() for p in pieces] == [[1, 1], [1, 1]] and not pieces[0]._is_view()
    pieces[0].mul_(3)
    (pieces[0].sum() + pieces[1].sum()).backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


def test_a_view_returned_by_a_function_cannot_be_written(device):
    words = "is a view and is being modified inplace. This view was created inside a custom Function"
    for function in (Identity, Viewed):
        x = leaf(device, 2) * 1
        y = function.apply(x)
        assert y is not x and y._is_view() and y._base is x
        with pytest.raises(RuntimeError, match=f"Output 0 of {function.__name__} {words}"):
            y.mul_(2)


def test_history_through_another_view(device):
    x = torch.ones(3, 2, device=device)
    view, other = x[1], x.view(-1)
    r = leaf(device, 3, 2)
    x.add_(r)
    assert (view * 3).requires_grad  # before the view's history was read
    assert view.requires_grad and not view.is_leaf and other.is_contiguous()
    (view * 3).sum().backward()
    assert r.grad.tolist() == [[0, 0], [3, 3], [0, 0]]
    with torch.no_grad():
        assert not (view * 3).requires_grad
    other.mul_(2)
    (x[0].sum() * 5).backward()
    assert r.grad.tolist() == [[10, 10], [3, 3], [0, 0]]
    # A write through one view reaches an older one, and `out=` refuses it.
    y = torch.ones(4, device=device)
    first, second = y[:2], y[1:3]
    first.mul_(leaf(device, 2))
    assert torch.cat([second, second]).requires_grad and (second + 1).requires_grad
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(torch.ones(2, device=device), 1, out=second)


def test_a_function_that_writes_to_a_view(device):
    x = leaf(device, 2)
    y = x * 1
    part = y[:1]
    out = Tripled.apply(part)
    assert out is part and y.tolist() == [3, 1]
    y.sum().backward()
    assert x.grad.tolist() == [3, 1]
    with pytest.raises(RuntimeError, match="Function cannot return more than one Tensor"):
        TripledAndTwice.apply((x * 1)[:1])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place"):
        Tripled.apply(x)


def test_hooks_and_retained_gradients_of_a_tensor_that_is_written(device):
    x = leaf(device, 2)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.retain_grad()
    y.mul_(2)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2]
    assert seen == [("after", [1, 1]), ("before", [2, 2])]
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 5)  # a retained gradient is taken after all hooks
    y[:1].mul_(2)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [5, 5]


def test_inference_tensors(device):
    ordinary = leaf(device, 2) * 1
    with torch.inference_mode():
        x = torch.ones(2, device=device)
        both = (x * 2, x[:1], x + ordinary, x.sum(), torch.cat([x, x]), x.detach(), x.data, x.max(0).values)
        assert all(t.is_inference() for t in both) and torch.is_inference(x)
        view = ordinary.view(-1)
        assert not view.is_inference() and view.requires_grad
        assert not (ordinary * 2).requires_grad
        x.add_(1)
        z = torch.ones(2, device=device, requires_grad=True)
        assert z.requires_grad and not (z * 2).requires_grad
    assert not (x + 1).is_inference() and x[0].is_inference() and not x.clone().is_inference()
    words = "Inplace update to inference tensor outside InferenceMode is not allowed"
    for write in (
        lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(ordinary.detach()), lambda: x.view(-1).mul_(2),
        lambda: x.__setitem__(0, 1), lambda: torch.add(ordinary.detach(), 1, out=x), lambda: x.uniform_(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            write()
    assert x.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * leaf(device, 2)
    assert (x + leaf(device, 2)).requires_grad
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        x._version
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified"):
        view.mul_(2)


def test_numbers_from_tensors_that_require_grad():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == [1, 1]


def test_a_second_backward_through_an_index_is_refused(device):
    x = leaf(device, 3)
    y = x[torch.tensor([0, 0, 1], device=device)].sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    z = x[:2].sum()
    z.backward()
    z.backward()


def test_nodes_save_only_tensors_that_gradients_need(device):
    x, y = leaf(device, 2), leaf(device, 2)
    plain = torch.full((2,), 2.0, device=device)
    for function in (
        lambda: x / 2, lambda: x**2, lambda: x / plain, lambda: x**plain, lambda: plain / y, lambda: x / y,
        lambda: torch.nn.functional.max_pool1d(x[None], 2)[0],
    ):  # fmt: skip
        out = function()
        before = torch.autograd.grad(function().sum(), [x, y], allow_unused=True)
        out.masked_fill_(torch.tensor([True, False], device=device)[: len(out)], 7)
        after = torch.autograd.grad(out.sum(), [x, y], allow_unused=True)
        for b, a in zip(before, after, strict=True):
            assert (a is None) == (b is None)
            if a is not None and len(out) > 1:
                assert a.tolist() == [0, b.tolist()[1]]
    product = x * plain
    plain.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    quotient = plain * y
    y.detach().add_(1)  # only needed for the gradient of `plain`, which wants none
    quotient.sum().backward()
    assert y.grad.tolist() == [3, 3]


def test_a_partial_pass_frees_the_nodes_it_ran(device):
    x = leaf(device, 2)
    h = x.exp()
    z = h.exp().sum()
    (g,) = torch.autograd.grad(z, h)
    (h.sum() * 2).backward()
    assert torch.allclose(x.grad, 2 * x.detach().exp()) and torch.allclose(g, h.detach().exp())
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(z, h)
