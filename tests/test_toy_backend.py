"""The backend of docs/backend.md, one page of code, carries tensors, gradients and training: what it gives is what the
CPU gives.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite.nn import functional as F

PAGE = Path(__file__).resolve().parents[1] / "docs" / "backend.md"


@pytest.fixture(scope="module", autouse=True)
def toy():
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if ">>>" not in block:
            exec(compile(block, str(PAGE), "exec"), names)
    return torch.device("toy")


def data(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape).astype(np.float32)


CALCULATIONS = {
    "arithmetic": lambda x, y: (x + y) * x - y / x**2,
    "broadcasting": lambda x, y: x[:, :1] * y[0] + 1.5,
    "comparison": lambda x, y: torch.where(x > y, x, -y),
    "reductions": lambda x, y: x.sum(0) + y.mean(1, keepdim=True) + x.amax() + y.amin(1, keepdim=True),
    "views": lambda x, y: (
        x.t().reshape(-1)[2:].view(2, -1) + y.permute(1, 0).unsqueeze(0).squeeze(0)[:2, :1].expand(2, 5)
    ),
    "indexing": lambda x, y: x[1:, ::2] + y[[0, 2]][:, [1, 3]] + x[x > 0].sum(),
    "products": lambda x, y: x @ y.T + torch.bmm(x[None], y.T[None])[0],
    "softmax": lambda x, y: torch.softmax(x, -1) * torch.log_softmax(y, 0),
    "layer norm": lambda x, y: F.layer_norm(x, (4,), y[0], y[1]),
    "cross entropy": lambda x, y: F.cross_entropy(x * y, torch.tensor([1, 0, 3], device=x.device)),
    "activations": lambda x, y: F.gelu(x) + F.silu(y) + F.relu(x - 1) + torch.sigmoid(y) + F.softplus(x),
    "cat": lambda x, y: torch.cat([x, y], 1).chunk(2, 1)[0] * torch.stack([x, y]).sum(0),
    "cumsum": lambda x, y: x.cumsum(1) * y.flip(0),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], (x * y)[None], is_causal=False),
    "embedding": lambda x, y: F.embedding(torch.tensor([0, 2, 2], device=x.device), x) * y,
    "gather": lambda x, y: x.gather(1, torch.tensor([[0, 1], [3, 3], [2, 0]], device=x.device)).exp() + y[:, :2],
}


def run(function, device, order):
    """Value, gradients and, for second order, the gradient of the gradient's sum of squares."""
    x, y = (torch.tensor(data(3, 4, seed=s), device=device, requires_grad=True) for s in (1, 2))
    out = function(x, y)
    assert out.device == torch.ones(1, device=device).device
    gradients = torch.autograd.grad((out * out).sum(), (x, y), create_graph=order == 2)
    if order == 2:
        gradients = torch.autograd.grad(sum((g * g).sum() for g in gradients), (x, y))
    return [t.detach().cpu().numpy() for t in (out, *gradients)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", CALCULATIONS)
def test_same_as_the_cpu(name, order):
    for there, here in zip(run(CALCULATIONS[name], "toy", order), run(CALCULATIONS[name], "cpu", order), strict=True):
        np.testing.assert_allclose(there, here, rtol=2e-4, atol=2e-5)


def test_views_share_memory_and_count_versions():
    x = torch.zeros(3, 4, device="toy")
    row = x[1]
    row += 5
    x[:, 0] = torch.tensor([1.0, 2.0, 3.0], device="toy")
    x.t()[3].fill_(7.0)
    assert x.tolist() == [[1, 0, 0, 7], [2, 5, 5, 7], [3, 0, 0, 7]] and row.tolist() == [2, 5, 5, 7]
    assert row._version == x._version == 3


def test_training_is_the_cpus():
    losses = {}
    for device in ("cpu", "toy"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        x, y = torch.tensor(data(12, 4)).to(device), torch.tensor([0, 1, 2] * 4).to(device)
        losses[device] = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["toy"] == pytest.approx(losses["cpu"], rel=1e-4) and losses["toy"][-1] < losses["toy"][0] / 2


def test_to_and_from(tmp_path):
    x = torch.arange(3, device="toy")
    assert repr(x) == "tensor([0, 1, 2], device='toy:0')"
    with pytest.raises(TypeError, match="can't convert toy:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x + torch.arange(3)
    torch.save({"x": x}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].device == x.device and torch.load(tmp_path / "x.pt", map_location="cpu")[
        "x"
    ].tolist() == [0, 1, 2]


def test_an_op_without_a_kernel_says_so():
    with pytest.raises(NotImplementedError, match=r"the op 'digamma' has no kernel on device 'toy:0'"):
        torch.ones(2, device="toy").digamma()


def test_gradients_move_between_devices():
    x = torch.tensor(data(3), requires_grad=True)
    there = (x * 2).to("toy")
    back = (there * there).cpu()
    back.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 * data(3), rtol=1e-6)
    assert x.grad.device.type == "cpu"
