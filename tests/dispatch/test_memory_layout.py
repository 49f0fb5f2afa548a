"""Strides of results and gradients are PyTorch's, recorded in memory_layouts.json (tools/record_expressions.py)."""

import json
from pathlib import Path

import pytest

import torchlite as torch
from torchlite._dispatch import memory_layout

FILE = Path(__file__).with_name("memory_layouts.json")
RECORDED = json.loads(FILE.read_text())

# On `x` of shape (2, 4, 6, 8), laid out in several ways, and `v` of (1, 4, 2, 3, 2); the last result counts.
IMAGES = """
F.interpolate(x, size=5)
F.interpolate(x, scale_factor=2, mode='bilinear')
F.interpolate(x, size=(3, 2), mode='area')
F.max_pool2d(x, 2)
F.max_pool2d(x, 3, 2, 1, return_indices=True)[1]
F.avg_pool2d(x, 2)
F.adaptive_avg_pool2d(x, 3)
F.adaptive_max_pool2d(x, 3)
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
F.pixel_shuffle(x, 2)
F.pixel_unshuffle(x, 2)
F.channel_shuffle(x, 2)
F.pad(x, (1, 1))
F.pad(x, (1, 1, 2, 0), mode='reflect')
F.pad(x, (1, 1, 2, 0), mode='replicate')
F.pad(x, (1, 1, 2, 0), mode='circular')
F.conv2d(x, w)
F.conv2d(x, w.to(memory_format=torch.channels_last))
F.conv2d(x, w, stride=2, padding=1)
F.conv_transpose2d(x, w.transpose(0, 1))
F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True)
F.batch_norm(x, torch.zeros(4, device=x.device), torch.ones(4, device=x.device))
F.layer_norm(x, (8,))
F.softmax(x, 1)
F.log_softmax(x, -1)
F.relu(x)
F.gelu(x)
F.leaky_relu(x)
F.hardtanh(x)
F.hardswish(x)
F.silu(x)
F.elu(x)
F.softplus(x)
F.dropout(x, 0.5)
F.dropout2d(x, 0.5)
x + 1
x * x
x + torch.ones(4, 1, 1, device=x.device)
x + x.contiguous()
x.contiguous() * x
x - torch.ones(2, 4, 6, 8, device=x.device)
x > 0
torch.where(x > 0, x, 1.0)
x.clamp(min=0)
x.exp()
x.clone()
x.clone(memory_format=torch.contiguous_format)
x.contiguous(memory_format=torch.channels_last)
x.to(torch.float64 if x.device.type == 'cpu' else torch.float16)
x.half()
x.to(memory_format=torch.channels_last)
x.half().to(torch.float32, memory_format=torch.contiguous_format)
torch.empty_like(x)
torch.zeros_like(x)
torch.rand_like(x)
torch.empty_like(x, memory_format=torch.contiguous_format)
torch.cat([x, x], 1)
torch.cat([x, x.contiguous()], 1)
torch.stack([x, x])
x.sum(1)
x.sum(1, keepdim=True)
x.mean((2, 3), keepdim=True)
x.amax(3)
x.max(1).values
x.argmax(2)
x.var(0)
x.cumsum(2)
x.flip(1)
x.roll(1, 2)
x.sort(1).values
x.tril()
x.index_select(1, torch.tensor([0, 2], device=x.device))
x[:, [0, 2]] if x.is_contiguous() else x.index_select(1, torch.tensor([0, 2], device=x.device))
x.gather(1, torch.zeros(2, 4, 6, 8, dtype=torch.int64, device=x.device))
x.masked_fill(x > 0, 0.0)
x.repeat(1, 2, 1, 1)
x.unsqueeze(1)
x.unsqueeze(-1)
"""
VOLUMES = """
F.interpolate(v, size=2)
F.max_pool3d(v, 1, 1)
F.avg_pool3d(v, 2)
F.adaptive_max_pool3d(v, 1)
F.batch_norm(v, None, None, training=True)
F.max_pool3d(v[0], 1)
F.avg_pool3d(v[0], 2)
F.adaptive_avg_pool3d(v[0], 1)
F.batch_norm(v[:1, :, 0], None, None, training=True)
v + 1
v.clone()
torch.empty_like(v)
"""
MATRICES = """
torch.linalg.inv(m @ m.mT + e)
torch.linalg.inv_ex(m @ m.mT + e)[0]
torch.linalg.solve(m @ m.mT + e, m)
torch.linalg.cholesky(m @ m.mT + e)
torch.linalg.qr(m)[0]
torch.linalg.qr(m)[1]
torch.linalg.svd(m)[0]
torch.linalg.svd(m)[2]
torch.linalg.eigh(m @ m.mT + e)[1]
torch.linalg.lu_factor(m)[0]
torch.linalg.lu(m)[1]
torch.linalg.lstsq(m, m)[0]
torch.linalg.pinv(m)
m @ m.mT
m.mT.contiguous()
torch.nonzero(m > 0)
m.softmax(0)
m.cumsum(0)
"""
# On `y` of shape (2, 4, 6).
LINES = """
F.conv1d(y, k)
F.conv1d(y, k, padding=1, stride=2)
F.conv_transpose1d(y, k.transpose(0, 1))
F.max_pool1d(y, 2)
F.avg_pool1d(y, 2)
F.adaptive_avg_pool1d(y, 3)
F.adaptive_max_pool1d(y, 3)
F.normalize(y, dim=1)
torch.rot90(y, 0)
torch.rot90(y, 1, (1, 2))
torch.fft.fft(y)
torch.fft.fft(y, dim=1)
torch.fft.fft(y, n=7, dim=0)
torch.fft.ifft(y * 1j, dim=1)
torch.fft.rfft(y, dim=1)
torch.fft.irfft(y * 1j, dim=0)
torch.fft.hfft(y * 1j, dim=1)
torch.fft.ihfft(y, dim=1)
torch.fft.fft2(y, dim=(0, 1))
torch.fft.fft2(y, dim=(2, 0))
torch.fft.ifft2(y * 1j, dim=(1, 0))
torch.fft.rfft2(y, dim=(2, 1))
torch.fft.irfft2(y * 1j, dim=(2, 0))
torch.fft.fftn(y)
torch.fft.rfftn(y, dim=(2, 1, 0))
torch.fft.irfftn(y * 1j, dim=(0, 2, 1))
torch.fft.hfft2(y * 1j, dim=(1, 2))
torch.fft.ihfftn(y, dim=(2, 0))
"""
ORDERS = {"contiguous": (0, 1, 2, 3), "channels_last": (0, 2, 3, 1), "reversed": (3, 2, 1, 0), "swapped": (1, 0, 2, 3)}


def values(torch, shape, device, order):
    """Distinct numbers of a shape, its dimensions in an order in memory from the outermost to the innermost."""
    n = 1
    for d in order:
        n *= shape[d]
    made = torch.arange(n, dtype=torch.float32, device=device).mul(0.7).cos().reshape([shape[d] for d in order])
    return made.permute([order.index(d) for d in range(len(order))])


def names_for(torch, kind, layout, device):
    """The operands of the expressions of a kind, in a layout."""
    names = {"torch": torch, "F": torch.nn.functional}
    if kind == "images":
        names["x"] = values(torch, (2, 4, 6, 8), device, ORDERS[layout])
        names["w"] = values(torch, (6, 4, 3, 3), device, (0, 1, 2, 3))
    elif kind == "volumes":
        order = {"contiguous": (0, 1, 2, 3, 4), "channels_last_3d": (0, 2, 3, 4, 1)}[layout]
        names["v"] = values(torch, (1, 4, 2, 3, 2), device, order)
    elif kind == "lines":
        order = {"contiguous": (0, 1, 2), "transposed": (0, 2, 1), "reversed": (2, 1, 0)}[layout]
        names["y"] = values(torch, (2, 4, 6), device, order)
        names["k"] = values(torch, (3, 4, 2), device, (0, 1, 2))
    else:
        names["m"] = values(torch, (2, 3, 4), device, {"contiguous": (0, 1, 2), "transposed": (0, 2, 1)}[layout])
        names["e"] = torch.eye(3, device=device)
    return names


KINDS = {
    "images": (IMAGES, tuple(ORDERS)),
    "volumes": (VOLUMES, ("contiguous", "channels_last_3d")),
    "matrices": (MATRICES, ("contiguous", "transposed")),
    "lines": (LINES, ("contiguous", "transposed", "reversed")),
}
CASES = [
    (kind, layout, expression)
    for kind, (text, names) in KINDS.items()
    for layout in names
    for expression in text.strip().splitlines()
]


def answers(torch) -> dict[str, list[int]]:
    """The strides that a library gives for all cases."""
    return {
        f"{kind} {layout} {expression}": list(eval(expression, names_for(torch, kind, layout, "cpu")).stride())
        for kind, layout, expression in CASES
    }


@pytest.mark.parametrize(("kind", "layout"), list(dict.fromkeys((kind, layout) for kind, layout, _ in CASES)))
def test_strides_of_results(kind, layout, device):
    torch.empty(1, 1, 1, 1, device=device, memory_format=torch.channels_last)  # from here on of mixed operands as well
    wrong = {}
    for expression in KINDS[kind][0].strip().splitlines():
        found = list(eval(expression, names_for(torch, kind, layout, device)).stride())
        expected = RECORDED[f"{kind} {layout} {expression}"]
        if found != expected:
            wrong[expression] = f"{found}, and PyTorch {expected}"
    assert not wrong


@pytest.mark.oracle
def test_the_recorded_strides_are_pytorchs():
    import torch as real

    assert answers(real) == RECORDED


@pytest.mark.parametrize("layout", ORDERS)
def test_gradients_of_leaves_lie_as_the_leaves(layout, device):
    for function in (
        lambda x: x.sum(),
        lambda x: (x * x).mean(),
        lambda x: torch.nn.functional.conv2d(x, torch.ones(2, 4, 3, 3, device=device)).sum(),
        lambda x: torch.nn.functional.max_pool2d(x, 2).sum(),
        lambda x: x.contiguous().relu().sum(),
    ):
        x = values(torch, (2, 4, 6, 8), device, ORDERS[layout]).detach().requires_grad_()
        function(x).backward()
        assert x.grad.stride() == x.stride()


def test_gradients_of_leaves_that_do_not_fill_memory_are_row_major(device):
    x = torch.ones(4, 6, device=device)[::2, ::3].detach().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == (2, 1)
    y = torch.ones(3, 1, device=device).expand(3, 4).detach().requires_grad_()
    (y * 2).sum().backward()
    assert y.grad.stride() == (4, 1)


def test_strides_without_elements(device):
    for size, strides in {(2, 0, 3): (3, 3, 1), (0,): (1,), (0, 5): (5, 1), (3, 0): (1, 1)}.items():
        assert torch.empty(size, device=device).stride() == strides
        assert (torch.zeros(size, device=device) + 1).stride() == strides
    assert torch.empty(5, 3, device=device)[:, :0].stride() == (3, 1)


def test_contiguity_by_format(device):
    x = torch.empty(2, 3, 4, 5, device=device)
    last = x.to(memory_format=torch.channels_last)
    assert last.stride() == (60, 1, 15, 3)
    assert (x.is_contiguous(), last.is_contiguous()) == (True, False)
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
    assert [x.is_contiguous(memory_format=f) for f in formats] == [True, False, False]
    assert [last.is_contiguous(memory_format=f) for f in formats] == [False, True, False]
    assert last[:, :, :1, :1].contiguous().is_contiguous(memory_format=torch.channels_last)
    assert torch.empty(2, 1, 4, 5, device=device).is_contiguous(memory_format=torch.channels_last)
    assert not last.is_contiguous(memory_format=torch.preserve_format)


def test_orders_of_memory():
    assert memory_layout.channels_last_strides((2, 3, 4, 5)) == (60, 1, 15, 3)
    assert memory_layout.suggests_channels_last((2, 3, 4, 5), (60, 1, 15, 3))
    assert not memory_layout.suggests_channels_last((2, 1, 1, 1), (1, 1, 1, 1))
    assert memory_layout.suggests_channels_last((2, 3, 1, 1), (3, 1, 3, 3))
    assert memory_layout.infer_dense_strides((5, 10, 5), (0, 5, 1)) == (50, 5, 1)
    assert memory_layout.infer_dense_strides((2, 3), (1, 2)) == (1, 2)
    assert memory_layout.infer_dense_strides((2, 3), (2, 8)) == (1, 2)
    # The first operand whose strides tell decides.
    assert memory_layout.elementwise_output_strides((2, 3), (((2, 3), (1, 2)), ((2, 3), (3, 1)))) == (1, 2)
    assert memory_layout.elementwise_output_strides((2, 3), (((3,), (1,)), ((2, 3), (1, 2)))) == (1, 2)


def test_tensors_without_data_have_strides():
    x = torch.empty(2, 4, 6, 8, device="meta").to(memory_format=torch.channels_last)
    for result in (x, x + 1, x.clone(), torch.empty_like(x), x.half(), torch.nn.functional.gelu(x)):
        assert result.stride() == (192, 1, 32, 4)
    assert torch.nn.functional.interpolate(x, size=5).stride() == (100, 1, 20, 4)
    assert torch.nn.functional.max_pool2d(x, 2).stride() == (48, 1, 16, 4)
    assert x.contiguous().stride() == (192, 48, 8, 1)
    assert torch.linalg.inv(torch.empty(3, 3, device="meta")).stride() == (1, 3)


def test_order_of_dimensions(device):
    x = torch.empty(2, 3, 5, 7, device=device)
    assert x.dim_order() == x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert x.transpose(0, 1).dim_order() == (1, 0, 2, 3)
    last = x.to(memory_format=torch.channels_last)
    assert last.dim_order() == (0, 2, 3, 1)
    assert x[..., :1].contiguous().dim_order() == (0, 1, 2, 3)
    formats = [torch.contiguous_format, torch.channels_last]
    assert last.dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    for wrong, check in ((torch.empty(2, 1, device=device), True), (torch.empty(2, 1, 3, 3, device=device), formats)):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            wrong.dim_order(ambiguity_check=check)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        x.dim_order(ambiguity_check="yes")


def test_an_empty_out_gets_the_strides_of_the_result(device):
    x = torch.ones(3, 4, device=device).t()
    assert torch.exp(x, out=torch.empty(0, device=device)).stride() == (1, 4)
    assert torch.add(x, x, out=torch.empty(0, device=device)).stride() == (1, 4)


def test_a_result_keeps_its_history_where_its_layout_is_changed(device):
    x = torch.ones(2, 4, 4, 4, device=device).to(memory_format=torch.channels_last).requires_grad_()
    y = torch.nn.functional.channel_shuffle(x, 2)
    assert y.is_contiguous(memory_format=torch.channels_last)
    y.sum().backward()
    assert x.grad.tolist() == torch.ones(2, 4, 4, 4).tolist()
