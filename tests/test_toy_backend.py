"""The backend of docs/backend.md, one page of code, supports tensors, gradients and training with the CPU's results.
Installed by its entry point it needs no change in the program.
"""

import subprocess
import sys
import tomllib

import numpy as np
import pytest

import torchlite as torch
from tests.toy_backend import PAGE, lacked_files, lacked_ops, lacked_tests, load_page, register, source
from torchlite import nn
from torchlite._dispatch import REGISTRY
from torchlite.backends import protocol
from torchlite.nn import functional as F


@pytest.fixture(scope="module", autouse=True)
def toy():
    register()
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


MODULES = {
    "dropout": (lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0)), (3, 4)),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), (2, 3, 4)),
    "convolution": (lambda: nn.Conv2d(2, 4, 3, padding=1, stride=2, groups=2), (2, 2, 5, 5)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 3, 3), (2, 2, 4, 4)),
    "batch norm and pooling": (lambda: nn.Sequential(nn.BatchNorm2d(2), nn.MaxPool2d(2)), (2, 2, 4, 4)),
    "LSTM": (lambda: nn.LSTM(4, 3), (2, 3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_compute_as_on_the_cpu(name):
    make, shape = MODULES[name]
    found = {}
    for device in ("cpu", "toy"):
        torch.manual_seed(0)
        module = make().to(device)
        x = torch.tensor(data(*shape), device=device, requires_grad=True)
        out = module(x)
        out = out[0] if isinstance(out, tuple) else out
        (out * out).sum().backward()
        found[device] = [t.detach().cpu() for t in (out, x.grad, *(p.grad for p in module.parameters()))]
    for there, here in zip(found["toy"], found["cpu"], strict=True):
        torch.testing.assert_close(there, here, rtol=2e-4, atol=2e-5)


def test_random_numbers():
    torch.manual_seed(7)
    first = torch.randn(2000, device="toy")
    torch.manual_seed(7)
    again, other = torch.randn(2000, device="toy"), torch.randn(2000, device="toy")
    assert first.equal(again) and not first.equal(other)
    assert abs(first.mean().item()) < 0.1 and abs(first.std().item() - 1) < 0.1
    generator = torch.Generator("toy").manual_seed(3)
    state = generator.get_state()
    numbers = torch.randint(-5, 5, (500,), device="toy", generator=generator)
    generator.set_state(state)
    assert torch.randint(-5, 5, (500,), device="toy", generator=generator).equal(numbers)
    assert sorted(set(numbers.tolist())) == list(range(-5, 5))
    assert sorted(torch.randperm(50, device="toy").tolist()) == list(range(50))
    with pytest.raises(RuntimeError, match="a state has 16 bytes, not 3"):
        generator.set_state(torch.zeros(3, dtype=torch.uint8))
    x = torch.ones(4000, device="toy", requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert x.grad.equal(y) and sorted(set(y.tolist())) == pytest.approx([0, 4 / 3])
    assert (y > 0).sum().item() / 4000 == pytest.approx(0.75, abs=0.05)


def test_topk_and_nonzero():
    x = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], device="toy", requires_grad=True)
    values, indices = x.topk(2)
    assert (values.tolist(), indices.tolist()) == ([[3, 2], [5, 4]], [[0, 2], [1, 2]])
    values.square().sum().backward()
    assert x.grad.tolist() == [[6, 0, 4], [0, 10, 8]]
    assert x.detach().nonzero().tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2]]
    assert torch.tensor(2.0, device="toy").nonzero().shape == (1, 0)


def test_views_share_a_storage():
    x = torch.arange(6.0, device="toy").view(2, 3)
    row = x[1]
    assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and x.untyped_storage().nbytes() == 24
    assert x.as_strided((2, 2), (1, 3)).tolist() == [[0, 3], [1, 4]]
    x.view(torch.int32)[0, 0] = 0x3F800000
    x.diagonal().add_(1)
    assert x.tolist() == [[2, 1, 2], [3, 5, 5]]


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


def test_an_op_without_a_kernel_raises():
    with pytest.raises(NotImplementedError, match=r"the op 'digamma' has no kernel on device 'toy:0'"):
        torch.ones(2, device="toy").digamma()


def test_gradients_move_between_devices():
    x = torch.tensor(data(3), requires_grad=True)
    there = (x * 2).to("toy")
    back = (there * there).cpu()
    back.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 * data(3), rtol=1e-6)
    assert x.grad.device.type == "cpu"


def test_list_of_ops_that_it_lacks():
    assert lacked_ops() == protocol.missing_kernels("toy")


def test_no_kernel_is_superfluous():
    """Each kernel's op is declared, and none has a composite, which would do."""
    kernels = load_page().backend.kernels(0)
    assert [name for name in kernels if REGISTRY[name].composite is not None] == []


def test_tests_that_need_more_are_there():
    """`pytest --device toy` then expects them to fail, and a pass is an error."""
    root = PAGE.parents[1]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "--device", "toy", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *lacked_tests()], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path for path in lacked_files() if not (root / path).exists()] == []


PROGRAM = """
import torchlite as torch

assert torch.device("toy:0").type == "toy"
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="toy")
layer(torch.randn(2, 3, 8, device="toy")).sum().backward()
assert layer.linear1.weight.grad.device == torch.device("toy:0")
x = torch.nn.Conv2d(2, 3, 3, device="toy")(torch.randn(1, 2, 5, 5, device="toy"))
assert x.flatten().topk(3).values.shape == (3,) and x.nonzero().shape[1] == 4

layer.eval()
compiled = torch.compile(layer, fullgraph=True)
x = torch.randn(2, 3, 8, device="toy")
with torch.no_grad():
    for _ in range(3):
        assert torch.allclose(compiled(x), layer(x))
print("fine")
"""


def test_the_entry_point_installs(tmp_path):
    """A distribution built from the page's pyproject.toml, on the path of a separate process."""
    text = PAGE.read_text().split("```toml\n")[1].split("```")[0]
    project = tomllib.loads(text)["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    (tmp_path / "toy_backend.py").write_text(source())
    path = [str(tmp_path), *(entry for entry in sys.path if entry)]
    environment = {"PYTHONPATH": ":".join(path), "PATH": "/usr/bin:/bin"}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    done = run("-W", "error", "-c", PROGRAM)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    done = run("-m", "torchlite", "info")
    assert "toy:0" in done.stdout and "ready: NumPy arrays in disguise" in done.stdout, done.stdout + done.stderr
