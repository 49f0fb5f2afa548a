"""`torch._grouped_mm`: values, gradients and second order against products of the groups, and its errors."""

from __future__ import annotations

import pytest

import torchlite as torch
import torchlite.nn.functional as F


def ends(*numbers, device="cpu"):
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def by_group(a, b, stops):
    """The products of the groups, each by itself."""
    if stops is None:
        return torch.bmm(a, b)
    bounds = list(zip([0, *stops[:-1]], stops, strict=True))
    if a.ndim == b.ndim == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in bounds])
    if a.ndim == 2:
        rest = a.new_zeros(a.shape[0] - stops[-1], b.shape[-1])
        return torch.cat([*(a[i:j] @ b[k] for k, (i, j) in enumerate(bounds)), rest])
    rest = a.new_zeros(a.shape[-2], b.shape[-1] - stops[-1])
    return torch.cat([*(a[k] @ b[:, i:j] for k, (i, j) in enumerate(bounds)), rest], 1)


CASES = {
    "rows": ((8, 16), (3, 16, 4), (1, 3, 8)),
    "rows, an empty group": ((8, 16), (3, 16, 4), (0, 5, 5)),
    "columns": ((3, 8, 16), (16, 8), (2, 4, 7)),
    "sums": ((8, 16), (16, 4), (4, 4, 12)),
    "stacks": ((3, 8, 16), (3, 16, 4), None),
    "no rows": ((0, 16), (2, 16, 4), (0, 0)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, dtype, device):
    shapes, stops = CASES[name][:2], CASES[name][2]
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(device, dtype).requires_grad_() for shape in shapes]
    copies = [x.detach().float().requires_grad_() for x in inputs]
    offs = None if stops is None else ends(*stops, device=device)
    out, expected = torch._grouped_mm(*inputs, offs), by_group(*copies, stops)
    weight = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(device)
    (out.float() * weight).sum().backward()
    (expected * weight).sum().backward()
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype]
    assert out.dtype is dtype and torch.equal(out, F.grouped_mm(*inputs, offs=offs))
    torch.testing.assert_close(out.float(), expected, atol=tolerance, rtol=tolerance)
    for mine, theirs in zip(inputs, copies, strict=True):
        torch.testing.assert_close(mine.grad.float(), theirs.grad, atol=4 * tolerance, rtol=tolerance)


def test_second_order_and_node():
    a, b = torch.randn(4, 8, requires_grad=True), torch.randn(2, 8, 4, requires_grad=True)
    out = torch._grouped_mm(a, b, ends(1, 4))
    assert type(out.grad_fn).__name__ == "GroupedMmBackward0"
    found = torch.autograd.grad(out.square().sum(), (a, b), create_graph=True)
    wanted = torch.autograd.grad(by_group(a, b, [1, 4]).square().sum(), (a, b), create_graph=True)
    for mine, theirs in zip(
        torch.autograd.grad(sum(g.square().sum() for g in found), (a, b)),
        torch.autograd.grad(sum(g.square().sum() for g in wanted), (a, b)),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-2)


def test_shapes_without_elements():
    a, b = torch.empty(8, 16, device="meta"), torch.empty(3, 16, 4, device="meta")
    assert torch._grouped_mm(a, b, torch.empty(3, dtype=torch.int32, device="meta")).shape == (8, 4)


ROWS, STACK = torch.ones(8, 16), torch.ones(3, 16, 4)
REFUSED = {
    "no offsets": (lambda: torch._grouped_mm(ROWS, STACK), "Have to provide offsets if there is a 2d matrix"),
    "offsets of two stacks": (lambda: torch._grouped_mm(STACK, STACK.mT, ends(1, 2, 3)), "or no offset if both"),
    "int64": (lambda: torch._grouped_mm(ROWS, STACK, torch.tensor([1, 3, 8])), "Offsets have to be int32"),
    "groups": (lambda: torch._grouped_mm(ROWS, STACK, ends(1, 8)), "matrix batch sizes have to match"),
    "inner sizes": (lambda: torch._grouped_mm(ROWS, STACK[:, 1:], ends(1, 3, 8)), "contraction dimension"),
    "ranks": (lambda: torch._grouped_mm(ROWS[0], STACK, ends(1, 3, 8)), "mat_a has to be 2 or 3d"),
    "dtypes": (lambda: torch._grouped_mm(ROWS, STACK.half(), ends(1, 3, 8)), "float != c10::Half"),
    "float64": (lambda: torch._grouped_mm(ROWS.double(), STACK.double(), ends(1, 3, 8)), "got Double"),
    "bias": (lambda: torch._grouped_mm(ROWS, STACK, ends(1, 3, 8), bias=ROWS), "Bias not supported yet"),
    "out_dtype": (
        lambda: torch._grouped_mm(ROWS, STACK, ends(1, 3, 8), out_dtype=torch.half),
        "output dtype must match",
    ),
    "descending": (lambda: torch._grouped_mm(ROWS, STACK, ends(3, 1, 8)), "offsets must ascend"),
    "too large": (lambda: torch._grouped_mm(ROWS, STACK, ends(1, 3, 9)), "offsets must ascend"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(RuntimeError, match=text):
        call()
