"""Conjugates and negatives as views with a bit: what they share, what they show, and their gradients, as in PyTorch."""

import copy
import io
import pickle

import numpy as np
import pytest

import torchlite as torch


@pytest.fixture
def x(device):
    return torch.tensor([[1 + 2j, 3 - 4j, 5j], [2 - 1j, -1 + 1j, 4 + 0j]], device=device)


def test_conj_of_a_real_tensor_returns_it(device):
    t = torch.ones(3, device=device)
    assert t.conj() is t
    assert t.resolve_conj() is t
    assert t.contiguous() is t
    assert not t.is_conj()


def test_a_conjugate_is_a_view_with_a_bit(x):
    y = x.conj()
    assert y.is_conj()
    assert not x.is_conj()
    assert y._base is x
    assert y.data_ptr() == x.data_ptr()
    assert y.tolist() == [[z.conjugate() for z in row] for row in x.tolist()]
    assert y[0, 1].item() == 3 + 4j
    assert torch.equal(y, x.conj_physical())
    assert not x.conj_physical().is_conj()
    assert not y.conj().is_conj()
    assert y.conj().data_ptr() == x.data_ptr()
    assert isinstance(y, torch.Tensor)


@pytest.mark.parametrize(
    ("text", "bit"),
    [
        ("y.t()", True), ("y[0]", True), ("y[:, 1:]", True), ("y.reshape(3, 2)", True), ("y.t().reshape(6)", False),
        ("y.detach()", True), ("y.expand(4, 2, 3)", True), ("y.view(-1)", True), ("y.squeeze()", True),
        ("y.diagonal()", True), ("y.unbind()[0]", True), ("y.chunk(2)[0]", True), ("y.contiguous()", True),
        ("y.t().contiguous()", False), ("y.as_strided((2,), (1,))", True), ("y.mH", False), ("x.mH", True),
        ("x.H", True), ("x.adjoint()", True), ("y.clone()", False), ("y + 1", False), ("-y", False),
        ("y.to(torch.complex64)", True), ("y[[0, 1]]", False), ("torch.cat([y, y])", False),
        ("y.resolve_conj()", False),
        ("torch.empty_like(y)", False), ("torch.conj(x)", True), ("x._conj()", True), ("x._conj_physical()", False),
        ("y @ x.t()", False), ("y.sum(0)", False), ("y.data", True),
    ],
)  # fmt: skip
def test_which_results_have_the_bit(x, text, bit):
    assert eval(text, {"x": x, "y": x.conj(), "torch": torch}).is_conj() is bit


def test_values_through_views(x):
    y, z = x.conj(), x.conj_physical()
    for text in (
        "t.t() * 2", "t[0] + t[1]", "t.reshape(3, 2).sum(1)", "t.t().reshape(6)", "t.expand(4, 2, 3)[3]",
        "t.diagonal()",
        "t.H", "t.mH @ t", "t.clone()", "t.abs()", "t.angle()", "t.exp()", "torch.cat([t, t])", "t[[1, 0]]", "t.mean()",
        "torch.where(t.real > 0, t, 0)", "t / (2 + 1j)", "t.conj()", "torch.view_as_real(t.resolve_conj())",
    ):  # fmt: skip
        ours, theirs = (eval(text, {"t": t, "torch": torch}) for t in (y, z))
        torch.testing.assert_close(ours, theirs)


def test_real_and_imaginary_parts(x):
    y = x.conj()
    assert not y.real.is_neg()
    assert y.real.tolist() == x.real.tolist()
    assert y.imag.is_neg()
    assert not y.imag.is_conj()
    assert y.imag.tolist() == (-x.imag).tolist()
    assert y.imag.data_ptr() == x.imag.data_ptr()
    assert not y.imag.clone().is_neg()
    assert not y.imag.resolve_neg().is_neg()
    assert (y.imag + 1).tolist() == (1 - x.imag).tolist()
    assert torch._neg_view(x).is_neg()
    assert torch._neg_view(x).conj().tolist() == (-x).conj_physical().tolist()


def test_writes_are_seen_in_the_memory(x):
    y = x.conj()
    y[0, 0] = 7 + 1j
    assert x[0, 0].item() == 7 - 1j
    y.mul_(1j)
    assert x[0, 1].item() == (1j * (3 + 4j)).conjugate()
    y.imag.fill_(2)
    assert x.imag.tolist() == [[-2.0] * 3] * 2
    y.copy_(torch.full((2, 3), 1 + 1j, device=x.device))
    assert x.tolist() == [[1 - 1j] * 3] * 2
    x.add_(1j)
    assert y.tolist() == [[1 + 0j] * 3] * 2
    y.zero_()
    assert not x.any()
    torch.add(torch.ones_like(x), 1j, out=y)
    assert x.tolist() == [[1 - 1j] * 3] * 2
    y.t_()
    assert y.shape == (3, 2)
    assert y.is_conj()


def test_conj_and_neg_bits_prevent_exports_and_views(x):
    y = x.cpu().conj()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that has conjugate bit set"):
        y.numpy()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that has negative bit set"):
        y.imag.numpy()
    np.testing.assert_array_equal(y.resolve_conj().numpy(), x.cpu().numpy().conj())
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(y)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        y.view(torch.float32)
    with pytest.raises(BufferError, match="conjugate bit"):
        y.__dlpack__()


def test_gradients(x):
    x.requires_grad_()
    w = torch.arange(6.0, device=x.device).reshape(2, 3)
    for function in (
        lambda t: (t.conj() * w).imag.sum(),
        lambda t: (t.conj() @ t.t()).real.sum(),
        lambda t: t.conj().t()[1:].abs().sum(),
        lambda t: (t.conj().imag * w).sum(),
        lambda t: (t.conj().clone() * t).real.sum(),
    ):
        grads = []
        for conj in ("conj", "conj_physical"):
            held, torch.Tensor.conj = torch.Tensor.conj, getattr(torch.Tensor, conj)
            try:
                (g,) = torch.autograd.grad(function(x), x)
            finally:
                torch.Tensor.conj = held
            grads.append(g)
        torch.testing.assert_close(*grads)
    assert x.conj().grad_fn.name() == "ConjBackward0"


def test_gradients_of_writes_through_the_bit(device):
    leaf = torch.tensor([1 + 1j, 2 - 1j], device=device, requires_grad=True)
    other = torch.tensor([1j, 1 + 0j], device=device, requires_grad=True)
    base = leaf * 1
    view = base.conj()
    view.mul_(other)  # base is now leaf * conj(other)
    assert base.tolist() == [(1 + 1j) * -1j, 2 - 1j]
    base.real.sum().backward()
    assert leaf.grad.tolist() == [1j, 1 + 0j]
    assert other.grad.tolist() == [1 + 1j, 2 - 1j]
    leaf.grad = other.grad = None
    base = leaf * 1
    view = base.conj()
    base.mul_(other)
    assert view.tolist() == [-1j * (1 - 1j), 2 + 1j]
    view.imag.sum().backward()
    # -imag(leaf * other)
    assert leaf.grad.tolist() == [-1 + 0j, -1j]
    assert other.grad.tolist() == [(-1j * (1 - 1j)).conjugate().conjugate(), -1j * (2 + 1j)]


def test_saved_loaded_pickled_copied(x):
    file = io.BytesIO()
    torch.save({"x": x, "y": x.conj()}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["y"].is_conj()
    assert found["y"].tolist() == x.conj().tolist()
    part = io.BytesIO()
    torch.save(x.conj().imag, part)
    part.seek(0)
    loaded = torch.load(part)
    assert loaded.is_neg()
    assert loaded.tolist() == x.conj().imag.tolist()
    found["y"][0, 0] = 1j
    assert found["x"][0, 0].item() == -1j
    for same in (pickle.loads(pickle.dumps(x.conj())), copy.deepcopy(x.conj()), copy.copy(x.conj())):
        assert same.tolist() == x.conj().tolist()


def test_repr_and_indexing(x):
    y = x.cpu().conj()
    assert repr(y[0, :2]) == "tensor([1.-2.j, 3.+4.j])"
    assert f"{y[0, 0]}" == "(1-2j)"
    assert [z.item() for z in y[0]] == [1 - 2j, 3 + 4j, -5j]
    assert bool((y == y.resolve_conj()).all())


def test_contiguous_is_the_tensor_itself(x):
    for y in (x.conj(), x.conj().imag.clone().conj(), torch._neg_view(x)):
        assert y.contiguous() is y
    assert x.conj().imag.contiguous().is_contiguous()


def test_pickles_keep_the_bits(x):
    for y in (x.conj(), torch._neg_view(x), torch._neg_view(x.conj()), x.conj().imag, x.conj().t()[1:]):
        z = pickle.loads(pickle.dumps(y))
        assert (z.is_conj(), z.is_neg()) == (y.is_conj(), y.is_neg())
        assert torch.equal(z, y) and z.stride() == y.stride() and z.device == y.device


def test_parameters_of_conjugates_are_parameters(x):
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(x.conj())
    assert type(module.weight) is torch.nn.Parameter
    assert list(module.state_dict()) == ["weight"] and torch.equal(module.weight.detach(), x.conj())
    assert repr(module.weight).startswith("Parameter containing:\ntensor(")
    (module.weight * 2).real.sum().backward()
    assert torch.equal(module.weight.grad, torch.full_like(x, 2))
