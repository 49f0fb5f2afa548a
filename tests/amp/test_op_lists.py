"""Every op of the table under autocast has the dtype that PyTorch's autocast gives it, by the CPU's
list and by CUDA's.
"""

from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np
import pytest

import torchlite as torch
from tests.ops.op_db import ROWS, leaves, load_rows
from torchlite._dispatch import REGISTRY
from torchlite.amp import op_lists

load_rows()
RECORDED = json.loads(pathlib.Path(__file__).with_name("dtypes.json").read_text())
# Where PyTorch's result depends on the path that it takes inside, on the CPU.
OTHERWISE = {
    ("einsum/13", "cpu/float32"),  # three operands: the last product is PyTorch's `mul` of float32
    *((f"linalg_pinv/{i}", "cpu/float32") for i in (0, 1, 4)),  # by way of `matmul`, with a loss of digits
    ("lstm/2", "cpu/float32"),  # a projected layer leaves its cells in float32
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=["cpu", "cuda"])
def lists(request, monkeypatch):
    """The lists of a device type, in force for tensors on the CPU."""
    monkeypatch.setitem(op_lists.RULES, "cpu", op_lists.RULES[request.param])
    before = torch.get_autocast_dtype("cpu")
    torch.set_autocast_dtype("cpu", torch.get_autocast_dtype(request.param))
    yield request.param
    torch.set_autocast_dtype("cpu", before)


def as_dtype(tree, dtype):
    if isinstance(tree, np.ndarray):
        made = torch.from_numpy(tree.copy())
        return made.to(dtype) if made.is_floating_point() else made.to(torch.complex64) if made.is_complex() else made
    if isinstance(tree, (list, tuple)):
        return type(tree)(as_dtype(item, dtype) for item in tree)
    return {k: as_dtype(v, dtype) for k, v in tree.items()} if isinstance(tree, dict) else tree


def dtypes(row, i, dtype, on):
    """Return the dtypes of a sample's results, space-separated, or the start of the error's message."""
    args, kwargs = as_dtype(row.values(i), dtype)
    torch.manual_seed(0)
    with torch.autocast("cpu", enabled=on):
        try:
            return " ".join(str(leaf.dtype).removeprefix("torch.") for leaf in leaves(row.function()(*args, **kwargs)))
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:40]}"


@pytest.mark.parametrize("name", sorted(name for name in ROWS if not name.startswith("_fused")))
def test_dtypes_are_those_of_pytorch(name, lists):
    for i in range(len(ROWS[name].samples)):
        for inputs, dtype in (("float32", torch.float32), ("lower", torch.get_autocast_dtype("cpu"))):
            key = f"{lists}/{inputs}"
            want = RECORDED.get(f"{name}/{i}", {}).get(key, "as without autocast")
            if want is None:
                continue
            if want == "as without autocast":
                want = dtypes(ROWS[name], i, dtype, False)
            found = dtypes(ROWS[name], i, dtype, True)
            assert (found == want) is ((f"{name}/{i}", key) not in OTHERWISE), (i, key, found, want)


def test_every_name_is_an_op():
    names = [name for lists in (op_lists.CUDA, op_lists.CPU) for text in lists.values() for name in text.split()]
    assert not [name for name in {*names, *op_lists.CPU_BY_ARGUMENTS} if name not in REGISTRY]
    for lists in (op_lists.CUDA, op_lists.CPU):
        listed = [name for text in lists.values() for name in text.split()]
        assert len(listed) == len(set(listed))


F = torch.nn.functional
# Result dtype in a region for float32 and for lower inputs on each device, by op: "lower", "float32" or "same".
CASES = {
    "mm": (lambda x: x.mm(x.T), "lower", "lower", "lower", "lower"),
    "matmul": (lambda x: x @ x.T, "lower", "lower", "lower", "lower"),
    "linear": (lambda x: F.linear(x, x), "lower", "lower", "lower", "lower"),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), "lower", "lower", "lower", "lower"),
    "conv1d": (lambda x: F.conv1d(x[None], x[:, :, None]), "lower", "lower", "lower", "lower"),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
        "lower",
        "lower",
        "lower",
        "lower",
    ),
    "prelu": (lambda x: F.prelu(x, x[0, :1]), "lower", "lower", "lower", "lower"),
    "softmax": (lambda x: x.softmax(-1), "float32", "lower", "float32", "float32"),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), "float32", "lower", "float32", "float32"),
    "cross_entropy": (lambda x: F.cross_entropy(x, x.argmax(0)), "float32", "float32", "float32", "float32"),
    "mse_loss": (lambda x: F.mse_loss(x, x), "float32", "float32", "float32", "float32"),
    "exp": (lambda x: x.exp(), "float32", "lower", "float32", "float32"),
    "pow": (lambda x: x**2.5, "float32", "lower", "float32", "float32"),
    "sum": (lambda x: x.sum(), "float32", "lower", "float32", "float32"),
    "prod": (lambda x: x.prod(), "float32", "float32", "float32", "float32"),
    "relu": (lambda x: x.relu(), "float32", "lower", "float32", "lower"),
    "gelu": (lambda x: F.gelu(x), "float32", "lower", "float32", "lower"),
    "add": (lambda x: x + x, "float32", "lower", "float32", "lower"),
    "stack": (lambda x: torch.stack([x, x]), "float32", "lower", "float32", "lower"),
    "addcmul": (lambda x: torch.addcmul(x, x.float(), x.float()), "float32", "float32", "float32", "float32"),
    "upsampled": (lambda x: F.interpolate(x[None, None], scale_factor=2), "float32", "lower", "float32", "float32"),
}


@pytest.mark.parametrize("name", CASES)
def test_dtypes_on_the_device(name, device):
    function, *expected = CASES[name]
    kind = device.partition(":")[0]
    lower = torch.get_autocast_dtype(kind)
    if kind != "cpu":
        expected = expected[2:]
    x = torch.tensor(np.random.default_rng(0).uniform(0.5, 1.5, (4, 4)), dtype=torch.float32, device=device)
    plain = function(x).float()
    for value, want in zip((x, x.to(lower)), expected, strict=False):
        with torch.autocast(kind):
            found = function(value)
        assert found.dtype is {"lower": lower, "float32": torch.float32}[want]
        assert torch.allclose(found.float(), plain, rtol=0.05, atol=0.05)
