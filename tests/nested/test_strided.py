"""Nested tensors with the strided layout: parts of any sizes over one buffer."""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3)


def made(**options):
    return torch.nested.nested_tensor([A, B], **options)


def test_construction():
    nt = made()
    assert nt.is_nested and nt.layout is torch.strided and nt.dim() == 3 and nt.numel() == 18
    assert (nt.size(0), nt.size(2)) == (2, 3) and nt._nested_tensor_size().tolist() == [[2, 3], [4, 3]]
    assert nt._nested_tensor_strides().tolist() == [[3, 1], [3, 1]]
    assert nt._nested_tensor_storage_offsets().tolist() == [0, 6]
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular"):
        nt.size(1)
    with pytest.raises(IndexError, match=r"to be in range of \[-3, 2\], but got 3"):
        nt.size(3)
    with pytest.raises(RuntimeError, match="doesn't support sizes"):
        nt.shape
    with pytest.raises(RuntimeError, match="must have the same dimension"):
        torch.nested.nested_tensor([torch.ones(2), torch.ones(2, 2)])
    with pytest.raises(RuntimeError, match="Converting between nested tensor layouts"):
        torch.nested.as_nested_tensor(nt, layout=torch.jagged)
    assert repr(nt).startswith("nested_tensor([\n  tensor([[0., 1., 2.],\n          [3., 4., 5.]]),\n")


def test_parts_and_padding():
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 4)])
    assert [tuple(p.shape) for p in nt.unbind()] == [(2, 3), (1, 4)]
    padded = nt.to_padded_tensor(-1.0)
    assert padded.shape == (2, 2, 4) and padded.sum() == 10 - 6
    assert torch.nested.to_padded_tensor(nt, 0.0, (3, 2, 5)).shape == (3, 2, 5)
    with pytest.raises(NotImplementedError):
        torch.nested.to_padded_tensor(torch.ones(2), 0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x, lambda x: x * 2, torch.relu, lambda x: x.softmax(-1), lambda x: F.layer_norm(x, (3,)),
        lambda x: x.transpose(-1, -2), lambda x: x @ x.transpose(-1, -2), lambda x: x.chunk(3, -1)[1],
        lambda x: F.linear(x, torch.ones(2, 3)), lambda x: x.select(-1, 0), lambda x: x.unsqueeze(-1),
        lambda x: x.sum(-1, keepdim=True), lambda x: x.clone(), lambda x: F.dropout(x, 0.0),
    ],
)  # fmt: skip
def test_op_is_that_of_each_part(function):
    for found, part in zip(function(made()).unbind(), (A, B), strict=True):
        torch.testing.assert_close(found, function(part))


def test_gradients():
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    nt = torch.nested.as_nested_tensor([a, b])
    (nt * nt).unbind()[1].sum().backward()
    assert torch.equal(b.grad, 2 * b) and torch.equal(a.grad, torch.zeros(2, 3))
    leaf = made(requires_grad=True)
    leaf.unbind()[0].sum().backward()
    assert [g.sum().item() for g in leaf.grad.unbind()] == [6, 0]


def test_refused():
    with pytest.raises(RuntimeError, match="always requires keepdim=True"):
        made().sum(-1)
    with pytest.raises(RuntimeError, match="Expected both to be nested"):
        made() @ torch.ones(3, 2)
    with pytest.raises(NotImplementedError, match="NestedTensorCPU"):
        made().sum()
    with pytest.raises(RuntimeError, match="two layouts"):
        made() + torch.nested.nested_tensor([A, B], layout=torch.jagged)
