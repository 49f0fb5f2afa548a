"""Views that share memory, in-place ops, version counters and history rebased through views."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch


def arange(n, device):
    return torch.arange(n, dtype=torch.float64, device=device)


def test_views_share_memory_and_versions(device):
    x = arange(6, device)
    v = x.view(2, 3)[1]
    v.mul_(10)
    assert x.tolist() == [0, 1, 2, 30, 40, 50]
    assert x._version == v._version == 1 and v._base is x and v._is_view()


@pytest.mark.parametrize(
    "take",
    [
        lambda x: x.view(3, 2),
        lambda x: x.reshape(3, 2),
        lambda x: x.view(2, 3).t(),
        lambda x: x[1:4],
        lambda x: x[2],
        lambda x: x[None],
        lambda x: x.view(2, 3).permute(1, 0),
        lambda x: x.unsqueeze(0),
        lambda x: x.view(1, 6).squeeze(0),
        lambda x: x.narrow(0, 1, 2),
        lambda x: x.detach(),
        lambda x: x.expand(2, 6),
        lambda x: x.as_strided((2,), (3,)),
        lambda x: x.view(2, 3).diagonal(),
        lambda x: x.split(2)[1],
        lambda x: x.unbind()[3],
        lambda x: x.chunk(2)[0],
        lambda x: x.unfold(0, 2, 2),
    ],
)
def test_every_view_op_writes_through(device, take):
    x = arange(6, device)
    v = take(x)
    before = x.clone()
    if v.stride() and 0 in v.stride():
        v = v[0]
    v.fill_(-7)
    assert (x == -7).sum() == v.numel()
    assert torch.equal(torch.where(x == -7, before, x), before)


def test_in_place_on_a_leaf_is_an_error(device):
    x = arange(3, device).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x[0] = 1.0
    assert x.tolist() == [0, 1, 2] and x._version == 0
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [1, 2, 3] and x.is_leaf


def test_in_place_on_a_non_leaf_rebases_its_history(device):
    x = arange(3, device).requires_grad_()
    y = x * 2
    y.mul_(x)
    y.sum().backward()
    assert x.grad.tolist() == [0, 4, 8]


def test_writing_to_a_view_reaches_the_base(device):
    x = arange(4, device).requires_grad_()
    y = x * 1
    y[1:3].mul_(10)
    y[0] = 5
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 2 * 10 * 10 * 1.0, 2 * 10 * 10 * 2.0, 6.0]


def test_an_earlier_view_sees_the_new_history(device):
    x = arange(4, device).requires_grad_()
    y = x * 1
    row = y[1:]
    y.mul_(3)
    (row * row).sum().backward()
    assert x.grad.tolist() == [0.0, 18.0, 36.0, 54.0]


def test_a_base_without_history_gets_one_through_its_view(device):
    buffer = torch.zeros(2, 3, dtype=torch.float64, device=device)
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, device=device, requires_grad=True)
    buffer[0].copy_(w)
    buffer[1] = w * 2
    assert buffer.requires_grad
    (buffer * torch.tensor([[1.0], [10.0]], dtype=torch.float64, device=device)).sum().backward()
    assert w.grad.tolist() == [21.0, 21.0, 21.0]


def test_views_of_views(device):
    x = arange(6, device).requires_grad_()
    y = x * 1
    y.view(2, 3).t()[2].mul_(5)
    assert y.tolist() == [0, 1, 10, 3, 4, 25]
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 5, 1, 1, 5]


def test_second_order_through_in_place(device):
    x = arange(3, device).requires_grad_()
    y = x * 1
    y[1:].mul_(x[1:])
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [1.0, 2.0, 4.0]
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [0.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "spoil",
    [lambda t: t.add_(1), lambda t: t.__setitem__(0, 1.0), lambda t: t.view(-1).mul_(2), lambda t: t.detach().zero_()],
)
def test_a_changed_saved_tensor_is_an_error_that_names_it(device, spoil):
    x = arange(3, device).requires_grad_()
    y = x.exp()
    z = (y * y).sum()
    spoil(y)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.DoubleTensor \[3\]\].*is at version 1; expected version 0",
    ):
        z.backward()


def test_writes_to_unsaved_tensors_are_allowed(device):
    x = arange(3, device).requires_grad_()
    y = x * 2
    z = (y + 1).sum()
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_result_dtype_and_shape_rules(device):
    x = torch.ones(2, dtype=torch.int64, device=device)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.add_(1.5)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]"):
        x.add_(torch.ones(3, 2, dtype=torch.int64, device=device))
    column = torch.ones(2, 1, device=device)
    for method in ("add_", "mul_", "div_"):
        with pytest.raises(
            RuntimeError, match=r"output with shape \[2, 1\] doesn't match the broadcast shape \[2, 3\]"
        ):
            getattr(column, method)(torch.ones(2, 3, device=device))
    assert x.tolist() == [1, 1] and x._version == 0 and column.tolist() == [[1], [1]]


def test_writes_with_gradients_between_complex_and_real(device):
    """A view of complex numbers as pairs, and of pairs as complex numbers, takes histories as any other."""

    def numbers(*values):
        return torch.tensor(values, device=device, requires_grad=True)

    z = numbers(1 + 2j, 3 - 1j)
    w = z * 1
    pairs = torch.view_as_real(w)
    pairs[..., 0].mul_(3)
    (w * (1 + 1j)).real.sum().backward()
    assert w.tolist() == [3 + 2j, 9 - 1j] and z.grad.tolist() == [3 - 1j, 3 - 1j]
    assert w.grad_fn.name() == "torch::autograd::CopySlices" and pairs.grad_fn.name() == "ViewAsRealBackward0"
    z = numbers(1 + 2j, 3 - 1j)
    w = z * 1
    w.real.mul_(2)
    w.imag.add_(1)
    (w * w).abs().sum().backward()
    assert w.tolist() == [2 + 3j, 6] and z.grad.tolist() == pytest.approx([8 + 6j, 24])
    w = z.detach() * 1
    pairs = torch.view_as_real(w)
    x = numbers(2.0, 3.0)
    pairs[:, 0].copy_(x)
    w.abs().square().sum().backward()
    assert w.tolist() == [2 + 2j, 3 - 1j] and x.grad.tolist() == pytest.approx([4, 6])
    x = numbers(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    torch.view_as_complex(y.view(2, 2)).mul_(1j)
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)).sum().backward()
    assert y.tolist() == [-2, 1, -4, 3] and x.grad.tolist() == [2, -1, 4, -3]
    x, z = numbers(1.0, 2.0, 3.0, 4.0), numbers(1 + 2j)
    y = x * 1
    seen = torch.view_as_complex(y.view(2, 2))
    seen[1] = z[0]
    (seen * (1 - 1j)).imag.sum().backward()
    assert y.tolist() == [1, 2, 1, 2] and x.grad.tolist() == [-1, 1, 0, 0] and z.grad.tolist() == [-1 + 1j]
    found = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)

    def write(z):
        w = z * 1
        torch.view_as_real(w)[0].mul_(torch.view_as_real(z)[1])
        return w * w

    assert torch.autograd.gradcheck(write, (found,)) and torch.autograd.gradgradcheck(write, (found,))


def test_augmented_assignment_is_in_place(device):
    x = arange(3, device)
    alias = x
    x += 1
    x *= 2
    x -= 1
    x /= 2
    assert alias is x and alias.tolist() == [0.5, 1.5, 2.5] and x._version == 4


def test_out_argument(device):
    out = torch.empty(0, dtype=torch.float64, device=device)
    x = arange(3, device)
    assert torch.add(x, x, out=out) is out and out.tolist() == [0, 2, 4]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.exp(torch.zeros(2, dtype=torch.float64, device=device), out=out)
    assert out.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(x.requires_grad_(), out=out)


def test_versions_of_tensors_on_one_memory(device):
    """A parameter and an instance of a subclass share the version counter of their tensor; `.data` has its own."""

    class Named(torch.Tensor):
        pass

    x = torch.zeros(2, device=device)
    parameter, named, data = torch.nn.Parameter(x), x.as_subclass(Named), x.data
    x.add_(1)
    assert (x._version, parameter._version, named._version, data._version) == (1, 1, 1, 0)
    data.add_(1)
    assert (x._version, parameter._version, data._version, x.data._version) == (1, 1, 1, 0)
    assert parameter.tolist() == [2, 2]


def test_counts_of_the_memory(device):
    """Each write to the memory of a tensor changes the counts of its memory, and memory that others write is lent."""
    from torchlite._dispatch.autograd_graph import memory_counter_of

    x = torch.zeros(2, 2, device=device)
    alias, other = x.data, torch.zeros(2, 2, device=device)
    other.data = x
    counter = memory_counter_of(x)
    assert memory_counter_of(alias) is memory_counter_of(other) is memory_counter_of(x[0]) is counter

    def kept(x):
        with torch.autograd._unsafe_preserve_version_counter(x):
            x.add_(1)

    for write in (
        lambda: x.add_(1), lambda: x[0].zero_(), lambda: alias.mul_(2), lambda: alias.data[1].zero_(),
        lambda: other.add_(1), lambda: x.detach().add_(1), lambda: kept(x),
        lambda: x.untyped_storage().copy_(torch.ones_like(x).untyped_storage()),
        lambda: torch.empty(0, device=device).set_(x.untyped_storage(), 0, (4,)).add_(1),
    ):  # fmt: skip
        before = counter.n, counter.others
        write()
        assert (counter.n, counter.others) != before
    assert not counter.lent
    if device == "cpu":
        before = counter.n, counter.others
        alias.numpy()
        assert counter.lent and (counter.n, counter.others) != before
        assert memory_counter_of(torch.from_numpy(np.zeros(2))).lent


def test_counts_keep_no_storage_alive():
    """A storage and its tensor end without the garbage collector."""
    import gc
    import weakref

    x = torch.zeros(2)
    storage = x.untyped_storage()
    gone = weakref.ref(storage)
    gc.collect()
    gc.disable()
    try:
        del x, storage
        assert gone() is None
    finally:
        gc.enable()
